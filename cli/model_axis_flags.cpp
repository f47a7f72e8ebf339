#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

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
                      .what = fmt::format("'{}' is not a ratio", text),
                      .hint = "a number that is not negative, such as 1.25"});
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
         .what = fmt::format("'{}' is not an order of the five axes", text),
         .hint = fmt::format("nearest ranks first: {} is the usual one", to_text(RankOrder{}))});
  order = *parsed;
}

/// "4,3": one number for each stage.
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
  constexpr std::int64_t kMost = 1 << 16;
  add_list(app, "--blocks-per-stage", flags.blocks_per_stage, {.smallest = 0, .largest = kMost},
           "blocks of each stage, cut by hand");
  add_list(app, "--stage-devices", flags.device_of_stage, {.smallest = 0, .largest = kMost},
           "device of each of these stages, from 0 (schedules naive and gpipe)");
}

void add_model_axis_flags(CLI::App& app, ModelParallelism& options) {
  app.add_flag("--tp-comm-overlap", options.tensor_overlap,
               "gather and scatter beside the matrix products");
  add_word_flag(app, "--context-algorithm", options.context, context_algorithm_from_name,
                {"all-gather", "ring", "all-to-all"}, "what context ranks exchange");
  add_ratio(app, "--expert-capacity", options.routing.capacity,
            "rows an expert takes at most, over the mean; 0: all");
  add_ratio(app, "--expert-imbalance", options.routing.imbalance,
            "rows of the busiest expert rank, over the mean");
  app.add_flag("--expert-fp8-dispatch", options.routing.fp8_dispatch,
               "rows go to their experts in fp8");
  app.add_option_function<std::string>(
         "--expert-node-limit",
         [&options](const std::string& text) {
           options.routing.node_limit = static_cast<int>(parse_count(
               "--expert-node-limit", text, {.smallest = 0, .largest = std::int64_t{1} << 16}));
         },
         "nodes on which the experts of a token may lie; 0: any")
      ->type_name("N");
  app.add_option_function<std::string>(
         "--rank-order", [&options](const std::string& text) { read_order(text, options.order); },
         "axes from nearest to furthest ranks")
      ->type_name("tp-cp-ep-dp-pp");
}

}  // namespace meshwright
