#include "cli/plan/plan_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/flags/amounts.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/usage_error.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/base/split_at.hpp"

namespace meshwright {
namespace {

constexpr CountRange kTopRange{.smallest = 1, .largest = 1000};
constexpr CountRange kTimeLimitRange{.smallest = 0, .largest = 1 << 20};  ///< 0: no limit
constexpr const char* kAutomatic = "auto";
constexpr const char* kLargest = "max";
constexpr const char* kPlanFooter =
    "Searched unless given: --tp --pp --vpp --dp --cp --ep --etp --micro-batch --schedule "
    "--recompute\n"
    "--zero --shard-ranks --bucket --overlap-gather --fsdp-no-reshard --sequence-parallel\n"
    "--tp-comm-overlap --context-algorithm; --offload-optimizer if nothing fits otherwise. All "
    "other\n"
    "options keep their default unless given. --trainer restricts the search to what this "
    "training\n"
    "program can run; without it, the default one gives only costs.\n\n"
    "A list or range of GPUs, several models or clusters, or --deadline make one search per "
    "combination;\n"
    "the table has the best plan of each. Training only: inference is not planned.\n\n"
    "Examples:\n"
    "  meshwright plan --model gpt3-175b --cluster dgx-a100 --gpus 1024 --global-batch 1536 \\\n"
    "      --seq 2048 -o best.plan.json\n"
    "  meshwright plan --model llama-3.1-70b --cluster dgx-h100 --gpus 64..1024 --tokens 15T \\\n"
    "      --deadline 60d --global-batch 1024 --seq 8192\n"
    "  meshwright plan --model ./config.json --cluster dgx-h100 --gpus 64 --global-batch 128 \\\n"
    "      --seq 4096 --fix --tp 4 --recompute none --json\n"
    "  meshwright plan --graph resnet50.onnx --cluster dgx-a100 --gpus 8 --global-batch 1024";

/// The options of plans of a graph.
constexpr std::array kGraphPlanOptions{"--graph",   "--batch-dim",    "--dim",     "--cluster",
                                       "--gpus",    "--global-batch", "--dtype",   "--micro-batch",
                                       "--top",     "--json",         "--format",  "--output",
                                       "--trainer", "--tp",           "--timeline"};

void add_graph_flags(CLI::App& command, GraphPlanFlags& flags) {
  flags.command = &command;
  const OptionGroup group(command, "Graphs of operators");
  add_value(
      command, "--graph", flags.file, "FILE",
      "ONNX or PyTorch model to train instead of --model: stages and their replicas, for every "
      "micro-batch size; -o: the names of the nodes of every stage");
  add_value(command, "--batch-dim", flags.batch_dimension, "DIMENSION",
            "symbolic dimension of the inputs that is the micro-batch (default: batch)");
  command
      .add_option("--dim", flags.dimensions, "size of another symbolic dimension, such as seq=512")
      ->type_name("DIMENSION=N")
      ->allow_extra_args(false);
  add_value(command, "--timeline", flags.timeline, "FILE",
            "write the simulated step of plan 1, as Perfetto trace");
}

void add_plan_batch_flags(CLI::App& command, PlanFlags& flags) {
  const OptionGroup group(command, kBatchOptions);
  add_value(command, "--global-batch", flags.global_batch, "N",
            "global batch size: sequences per training step");
  add_value(command, "--seq", flags.sequence_length, "N|max",
            "sequence length, in tokens; max: the longest multiple of 1024 that fits");
}

void add_run_cost_flags(CLI::App& command, PlanFlags& flags) {
  const OptionGroup group(command, "Time and cost of the training run");
  add_value(command, "--tokens", flags.tokens, "N",
            "tokens to train on, such as 15T or 300B: prints days, GPU-hours and cost");
  add_value(command, "--deadline", flags.deadline, "TIME",
            "recommend the fewest GPUs that train --tokens within TIME, such as 30d");
  add_value(command, "--price", flags.price, "X",
            "US dollars per GPU-hour (default: price of the cluster's nodes, if it has one)");
}

const std::string& required_value(const std::string& value, const char* flag, const char* example) {
  if (!value.empty()) return value;
  refuse_flag(flag, "missing required option",
              fmt::format("set it, for example {} {}", flag, example));
}

std::vector<std::string> names_of(const std::string& value, const char* flag, const char* example) {
  std::vector<std::string> names;
  for (const std::string_view name : split_at_commas(required_value(value, flag, example)))
    names.emplace_back(name);
  for (const std::string& name : names)
    if (name.empty())
      refuse_flag(flag, fmt::format("empty name in '{}'", value), "separate names by one comma");
  return names;
}

/// "64", "64..1024".
SizeRange size_range_from_text(const std::string& text) {
  constexpr const char* kFlag = "--gpus";
  const auto count = [](const std::string& number) {
    return static_cast<int>(parse_count(kFlag, number, kGpuRange));
  };
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return {count(text), count(text)};
  const SizeRange range{count(text.substr(0, dots)), count(text.substr(dots + 2))};
  if (range.smallest > range.largest)
    refuse_flag(
        kFlag, fmt::format("empty range '{}'", text),
        fmt::format("write the smaller number first: {}..{}", range.largest, range.smallest));
  return range;
}

std::vector<SizeRange> gpu_sizes_from_text(const std::string& text) {
  std::vector<SizeRange> sizes;
  if (text == kAutomatic) return sizes;
  for (const std::string_view part : split_at_commas(text))
    sizes.push_back(size_range_from_text(std::string(part)));
  return sizes;
}

std::int64_t global_batch_of(const PlanFlags& flags) {
  constexpr const char* kFlag = "--global-batch";
  const std::string& text = required_value(flags.global_batch, kFlag, "1536");
  if (text == kLargest)
    refuse_flag(kFlag,
                "'max' has no meaning: with gradient accumulation any global batch fits in memory",
                "set the batch size of the training recipe; micro-batch sizes are searched");
  return parse_count(kFlag, text, kGlobalBatchRange);
}

std::optional<std::int64_t> sequence_length_of(const PlanFlags& flags) {
  const std::string& text = required_value(flags.sequence_length, "--seq", "2048");
  if (text == kLargest) return std::nullopt;
  return parse_count("--seq", text, kSequenceRange);
}

std::optional<PlannedRun> planned_run_of(const PlanFlags& flags) {
  std::optional<FailureModel> failures = failure_model(flags.failures, 1);
  if (flags.tokens.empty()) {
    for (const auto& [flag, value] :
         {std::pair("--deadline", &flags.deadline), std::pair("--price", &flags.price),
          std::pair("--mtbf", &flags.failures.mtbf)})
      if (!value->empty())
        refuse_flag(flag, "requires '--tokens'",
                    "set the number of tokens to train on, such as --tokens 15T");
    return std::nullopt;
  }
  PlannedRun run{.tokens = parse_token_count("--tokens", flags.tokens),
                 .failures = failures,
                 .checkpoint_interval = checkpoint_interval(flags.failures)};
  if (!flags.price.empty()) run.device_price = parse_device_price("--price", flags.price);
  return run;
}

}  // namespace

CLI::App* add_plan_command(CLI::App& app, PlanFlags& flags) {
  CLI::App* command =
      app.add_subcommand("plan", "Search for the fastest way to train a model on a cluster.");
  add_source_flags(*command, flags.sources);
  for (const char* flag : {"--model", "--cluster"}) {
    CLI::Option* option = command->get_option(flag);
    option->description(option->get_description() + "; several: separated by commas");
  }
  {
    const OptionGroup group(*command, kSourceOptions);
    add_value(*command, "--gpus", flags.gpus, "N|N,N,...|N..N|auto",
              "total number of GPUs, on clusters with several node types the most that a plan may "
              "use; N..N: powers of two, alone or times whole nodes; auto: the fewest on which a "
              "plan fits");
  }
  add_plan_batch_flags(*command, flags);
  {
    const OptionGroup group(*command, "Search");
    add_count(*command, "--top", flags.top, kTopRange, "number of plans to list (default: 10)");
    add_count(*command, "--time-limit", flags.time_limit, kTimeLimitRange,
              "seconds to search before the best plans so far are printed with the optimality gap, "
              "as after Ctrl-C, shared by several searches; comparing training programs takes up "
              "to half as long again; 0: until they are proved optimal (default: 10)");
    add_count(*command, "--threads", flags.threads, kThreadRange,
              "search threads, without effect on the result; 0: all cores (default: 0)");
    add_value(*command, "--margin", flags.margin, "SIZE",
              "memory to leave free on every device, such as 2GiB (default: 0)");
    command->add_flag("--why", flags.why, "explain every listed plan, not only the best one");
    command->add_flag("--sensitivity", flags.sensitivity,
                      "search again with 10 % less and more link bandwidth, peak compute and "
                      "memory, within another --time-limit: does plan 1 stay the fastest?");
    command->add_flag("--per-layer", flags.per_layer,
                      "let recomputation, resharding (ZeRO 3) and tensor parallelism differ "
                      "between layers, in all listed plans: how much faster is that?");
    command->add_flag("--fix", flags.fix,
                      "no effect: options given on the command line are always fixed");
  }
  add_graph_flags(*command, flags.graph);
  add_run_cost_flags(*command, flags);
  add_failure_flags(*command, flags.failures);
  add_choice_flags(*command, flags.choices);
  add_report_flags(*command, flags.output, "the best plan");
  command->footer(kPlanFooter);
  return command;
}

GraphPlanRequest graph_plan_request(const PlanFlags& flags) {
  for (const CLI::Option* option : flags.graph.command->get_options()) {
    const std::string name = option->get_name();
    if (option->count() > 0 && !std::ranges::count(kGraphPlanOptions, name))
      refuse_flag(name, "cannot be used with --graph",
                  fmt::format("remove it; a graph has {}", fmt::join(kGraphPlanOptions, " ")));
  }
  GraphPlanRequest request{.file = flags.graph.file,
                           .model = {},
                           .batch_dimension = flags.graph.batch_dimension,
                           .gpus = {},
                           .micro_batch = flags.choices.micro_batch,
                           .tensor = flags.choices.tensor,
                           .timeline = flags.graph.timeline,
                           .global_batch = global_batch_of(flags),
                           .top = flags.top.value_or(10)};
  request.model.cluster = flags.sources.cluster;
  request.model.dimensions = flags.graph.dimensions;
  request.model.trainer = flags.sources.trainer;
  request.model.dtype = flags.choices.dtype;
  if (!flags.gpus.empty())
    request.gpus = static_cast<int>(parse_count("--gpus", flags.gpus, kGpuRange));
  return request;
}

PlanRequest plan_request(const PlanFlags& flags) {
  PlanRequest request;
  if (!flags.graph.timeline.empty())
    refuse_flag("--timeline", "can only be used with --graph",
                "save a plan with -o, and write its timeline by 'meshwright simulate'");
  if (!flags.gpus.empty()) request.gpus = gpu_sizes_from_text(flags.gpus);
  request.run = planned_run_of(flags);
  request.models = names_of(flags.sources.model, "--model", "gpt3-175b");
  request.clusters = names_of(flags.sources.cluster, "--cluster", "dgx-a100");
  required_value(flags.gpus, "--gpus", "1024");
  request.global_batch = global_batch_of(flags);
  request.sequence_length = sequence_length_of(flags);
  if (!flags.deadline.empty()) request.deadline = parse_positive_time("--deadline", flags.deadline);
  if (!flags.margin.empty()) request.memory_margin = parse_bytes(flags.margin, "--margin");
  if (!request.sequence_length && (!is_single_search(request) || request.gpus.empty()))
    refuse_flag("--seq", "'max' requires one model, one cluster and one number of GPUs",
                "set the sequence length, or ask for each combination by itself");
  if (flags.per_layer && (!request.sequence_length || request.gpus.empty()))
    refuse_flag("--per-layer", "cannot be combined with '--seq max' or '--gpus auto'",
                "plan with the sequence length and the number of GPUs that they find");
  if (request.clusters.size() > 1 && !flags.sources.calibration.empty())
    refuse_flag("--calibration", "cannot be combined with several clusters",
                "plan for the cluster that was measured");
  if (!is_single_search(request) &&
      (flags.top || flags.why || flags.sensitivity || flags.per_layer))
    refuse_flag(flags.top           ? "--top"
                : flags.why         ? "--why"
                : flags.sensitivity ? "--sensitivity"
                                    : "--per-layer",
                "requires one model, one cluster, one number of GPUs and no '--deadline'",
                "plan for one combination to see more of its plans");
  if (request.models.size() > 1 && !flags.output.file.empty())
    refuse_flag("--output", "cannot be combined with several models", "plan for one model");
  return request;
}

bool is_single_search(const PlanRequest& request) {
  const bool one_size =
      request.gpus.empty() ||
      (request.gpus.size() == 1 && request.gpus[0].smallest == request.gpus[0].largest);
  return request.models.size() == 1 && request.clusters.size() == 1 && one_size &&
         !request.deadline;
}

}  // namespace meshwright
