#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "core/base/number_from_text.hpp"
#include "core/base/split_at.hpp"

namespace meshwright {
namespace {

constexpr double kLargestRatio = 1e6;

double parse_ratio(const std::string& flag, const std::string& text) {
  const auto value = number_from_text<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0 || *value > kLargestRatio)
    throw UsageError({.where = flag,
                      .what = fmt::format("invalid value '{}': expected a number from 0 to {:.0f}",
                                          text, kLargestRatio),
                      .hint = ""});
  return *value;
}

void add_ratio(CLI::App& app, const std::string& flag, double& value,
               const std::string& description) {
  app.add_option_function<std::string>(
         flag, [&value, flag](const std::string& text) { value = parse_ratio(flag, text); },
         description)
      ->type_name("X");
}

RankOrder read_order(const std::string& text) {
  const std::optional<RankOrder> parsed = rank_order_from_text(text);
  if (!parsed) {
    std::vector<std::string> names;
    names.reserve(kAxes.size());
    for (const Axis axis : kAxes) names.emplace_back(name_of(axis));
    throw UsageError(
        {.where = "--rank-order",
         .what =
             fmt::format("invalid value '{}': expected {}, each once", text, enumeration(names)),
         .hint = fmt::format("write the axis of consecutive ranks first; the default is {}",
                             to_text(RankOrder{}))});
  }
  return *parsed;
}

constexpr CountRange kPipelineStageRange{.smallest = 0, .largest = 1 << 16};

/// "4,3": one number per stage.
std::vector<int> parse_list(const std::string& flag, const std::string& text) {
  std::vector<int> values;
  for (const std::string_view word : split_at_commas(text))
    values.push_back(static_cast<int>(parse_count(flag, std::string(word), kPipelineStageRange)));
  return values;
}

/// A list of counts or a rule.
void read_cut(const std::string& flag, const std::string& text, StrategyFlags& flags) {
  flags.blocks_per_stage.clear();
  flags.stage_cut = stage_cut_from_text(text);
  if (flags.stage_cut) return;
  if (!text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0)
    throw UsageError(
        {.where = flag,
         .what = fmt::format("invalid value '{}'", text),
         .hint = "use balanced, uniform, uniform:first=N,last=N, uniform:embedding,loss, or one "
                 "number per stage: 4,4,3"});
  flags.blocks_per_stage = parse_list(flag, text);
}

LayerOptions read_layer_options(const std::string& flag, const std::string& text) {
  std::optional<LayerOptions> options = layer_options_from_text(text);
  if (!options)
    throw UsageError(
        {.where = flag,
         .what = fmt::format("invalid value '{}'", text),
         .hint = "use for example 0-7:recompute=full+60-79:fsdp-reshard=no+3:tp=1, with none, "
                 "selective, full, modules:NAME,NAME or torch-selective for recompute"});
  return std::move(*options);
}

}  // namespace

void add_placement_flags(CLI::App& app, StrategyFlags& flags) {
  const OptionGroup group(app, kPipelineOptions);
  const std::string cut = "--blocks-per-stage", devices = "--stage-devices";
  app.add_option_function<std::string>(
         cut, [&flags, cut](const std::string& text) { read_cut(cut, text, flags); },
         "transformer blocks per pipeline stage: a list of counts; balanced by cost; uniform, "
         "optionally with the counts of the first and last pipeline rank (uniform:first=3,last=2) "
         "or with the embedding and the loss counted as blocks (uniform:embedding,loss), as in "
         "Megatron-LM (default: balanced)")
      ->type_name("N,N,...|RULE");
  app.add_option_function<std::string>(
         devices,
         [&flags, devices](const std::string& text) {
           flags.device_of_stage = parse_list(devices, text);
         },
         "pipeline rank of each stage, from 0 (schedules naive and gpipe only)")
      ->type_name("N,N,...");
  const std::string of_layers = "--layer-options";
  app.add_option_function<std::string>(
         of_layers,
         [&flags, of_layers](const std::string& text) {
           flags.layer_options = read_layer_options(of_layers, text);
         },
         "options per block, from 0: recompute=HOW; fsdp-reshard=yes or no; tp=1: tensor "
         "ranks share the tokens of the block instead of its weights")
      ->type_name("FIRST-LAST:OPTION=VALUE+...");
}

void add_model_axis_flags(CLI::App& app, FixedChoices& choices) {
  ModelParallelism& options = choices.model_parallelism;
  std::optional<OptionGroup> group(std::in_place, app, "Tensor and context parallelism");
  add_switch(app, "--tp-comm-overlap", choices.tensor_overlap,
             "overlap tensor-parallel communication with GEMMs; requires --sequence-parallel",
             "run tensor-parallel communication between GEMMs");
  add_choice(app, "--context-algorithm", choices.context_algorithm, context_algorithm_from_name,
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
  app.add_flag("--expert-overlap", options.routing.overlap,
               "overlap dispatch and combine with kernels of another micro-batch");
  group.emplace(app, kSizeOptions);
  app.add_option_function<std::string>(
         "--rank-order",
         [&choices](const std::string& text) { choices.rank_order = read_order(text); },
         fmt::format("order of the parallel axes, consecutive ranks first (default: {})",
                     to_text(RankOrder{})))
      ->type_name("ORDER");
}

}  // namespace meshwright
