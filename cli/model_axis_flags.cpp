#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "cli/help_formatter.hpp"
#include "cli/strategy_flags.hpp"
#include "cli/word_flag.hpp"

namespace meshwright {
namespace {

constexpr double kLargestRatio = 1e6;

double parse_ratio(const std::string& flag, const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error != std::errc{} || !std::isfinite(value) || value < 0 ||
      value > kLargestRatio)
    throw UsageError({.where = flag,
                      .what = fmt::format("invalid value '{}': expected a number from 0 to {:.0f}",
                                          text, kLargestRatio),
                      .hint = ""});
  return value;
}

void add_ratio(CLI::App& app, const std::string& flag, double& value,
               const std::string& description) {
  app.add_option_function<std::string>(
         flag, [&value, flag](const std::string& text) { value = parse_ratio(flag, text); },
         description)
      ->type_name("X");
}

void read_order(const std::string& text, RankOrder& order) {
  const std::optional<RankOrder> parsed = rank_order_from_text(text);
  if (!parsed)
    throw UsageError(
        {.where = "--rank-order",
         .what = fmt::format("invalid value '{}': expected tp, cp, ep, dp and pp, each once", text),
         .hint = fmt::format("write the axis of consecutive ranks first; the default is {}",
                             to_text(RankOrder{}))});
  order = *parsed;
}

/// "4,3": one number per stage.
void add_list(CLI::App& app, const std::string& flag, std::vector<int>& values, CountRange range,
              const std::string& description) {
  app.add_option_function<std::string>(
         flag,
         [&values, flag, range](const std::string& text) {
           values.clear();
           for (std::size_t begin = 0; begin <= text.size();) {
             const std::size_t end = std::min(text.find(',', begin), text.size());
             values.push_back(
                 static_cast<int>(parse_count(flag, text.substr(begin, end - begin), range)));
             begin = end + 1;
           }
         },
         description)
      ->type_name("N,N,...");
}

}  // namespace

void add_placement_flags(CLI::App& app, StrategyFlags& flags) {
  const OptionGroup group(app, kPipelineOptions);
  constexpr std::int64_t kMost = 1 << 16;
  add_list(app, "--blocks-per-stage", flags.blocks_per_stage, {.smallest = 0, .largest = kMost},
           "transformer blocks per pipeline stage (default: balanced by cost)");
  add_list(app, "--stage-devices", flags.device_of_stage, {.smallest = 0, .largest = kMost},
           "pipeline rank of each stage, from 0 (schedules naive and gpipe only)");
}

void add_model_axis_flags(CLI::App& app, ModelParallelism& options) {
  std::optional<OptionGroup> group(std::in_place, app, "Tensor and context parallelism");
  app.add_flag("--tp-comm-overlap", options.tensor_overlap,
               "overlap tensor-parallel communication with GEMMs; requires --sequence-parallel");
  add_word_flag(app, "--context-algorithm", options.context, context_algorithm_from_name,
                {"all-gather", "ring", "all-to-all"},
                "communication of context-parallel attention (default: all-gather)");
  group.emplace(app, "Mixture of experts");
  add_ratio(app, "--expert-capacity", options.routing.capacity,
            "expert capacity factor; 0: dropless (default: 0)");
  add_ratio(app, "--expert-imbalance", options.routing.imbalance,
            "load of the busiest expert-parallel rank relative to the mean (default: 1)");
  app.add_flag("--expert-fp8-dispatch", options.routing.fp8_dispatch,
               "dispatch tokens to experts in fp8");
  app.add_option_function<std::string>(
         "--expert-node-limit",
         [&options](const std::string& text) {
           options.routing.node_limit = static_cast<int>(parse_count(
               "--expert-node-limit", text, {.smallest = 0, .largest = std::int64_t{1} << 16}));
         },
         "route each token to experts on at most N nodes; 0: no limit (default: 0)")
      ->type_name("N");
  group.emplace(app, kSizeOptions);
  app.add_option_function<std::string>(
         "--rank-order", [&options](const std::string& text) { read_order(text, options.order); },
         "order of the parallel axes, consecutive ranks first (default: tp-cp-ep-dp-pp)")
      ->type_name("ORDER");
}

}  // namespace meshwright
