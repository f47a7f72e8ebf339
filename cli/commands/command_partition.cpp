#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/partition/chain_report.hpp"
#include "cli/partition/model_graph.hpp"
#include "cli/partition/partition_report.hpp"
#include "cli/partition/partition_step.hpp"
#include "cli/partition/pipedream_report.hpp"
#include "cli/partition/replication_report.hpp"
#include "cli/partition/sharding_report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/base/split_at.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "models/graphs/graph_files.hpp"

namespace meshwright {
namespace {

constexpr CountRange kAcceleratorRange{.smallest = 0, .largest = kMostPartitionDevices};
constexpr CountRange kPipeDreamLevelRange{.smallest = 1, .largest = kLargestPipeDreamLevel};
constexpr CountRange kMicrobatchesPerBatch{.smallest = 1, .largest = kMostMicrobatches};
constexpr CountRange kTimeLimitRange{.smallest = 1, .largest = 1 << 20};
constexpr CountRange kHostRange{.smallest = 0, .largest = 64};
constexpr CountRange kLayerRange{.smallest = 1, .largest = kMostChainOperators};
constexpr CountRange kBatchRange{.smallest = 1, .largest = 1 << 20};

struct PartitionFlags {
  std::string graph, devices, memory, bandwidth, timeline, objective;
  std::optional<int> hosts, microbatches, time_limit, layers, global_batch;
  ModelGraphFlags model;
  OutputFlags output;
};

CLI::App* add_partition_command(CLI::App& app, PartitionFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "partition",
      "Partition an operator graph over devices, with the best throughput or latency.");
  add_value(*command, "GRAPH", flags.graph, "FILE",
            "operator graph: ONNX, JSON of msr-fiddle/dnn-partitioning, of msr-fiddle/piper or of "
            "IOPDDL, or graph.txt of PipeDream, also compressed by gzip; -: standard input; or "
            "FOLDER/MODEL of the tables of Aceso");
  {
    const OptionGroup group(*command, "Devices");
    add_value(*command, "--devices", flags.devices, "N",
              "number of devices (default: of the file; ONNX: of one node); PipeDream, Aceso: also "
              "devices per server x servers, such as 4x4");
    add_count(*command, "--hosts", flags.hosts, kHostRange,
              "dnn-partitioning: number of host processors that can run a stage (default: of the "
              "file)");
    add_value(*command, "--memory", flags.memory, "SIZE",
              "memory per device, such as 16GiB (default: of the file, or of the cluster)");
    add_value(*command, "--bandwidth", flags.bandwidth, "RATE",
              "Piper: bandwidth between devices, such as 25GB/s (default: of the file); PipeDream: "
              "of every level, such as 12GB/s,1.25GB/s");
    add_count(*command, "--microbatches", flags.microbatches, kMicrobatchesPerBatch,
              "Piper, ONNX: micro-batches per batch (default: of the file, or 4 per device)");
    add_count(*command, "--layers", flags.layers, kLayerRange,
              "Aceso: layers of the model, of which the tables have one");
    add_count(*command, "--global-batch", flags.global_batch, kBatchRange,
              "Aceso: samples per training step");
  }
  add_choice(*command, "--objective", flags.objective, {"throughput", "latency"},
             "dnn-partitioning, ONNX with --inference: what is best, the time per sample or the "
             "time of one sample (default: throughput)");
  add_count(*command, "--time-limit", flags.time_limit, kTimeLimitRange,
            "IOPDDL: seconds to search (default: 10)");
  add_model_graph_flags(*command, flags.model);
  add_value(*command, "--timeline", flags.timeline, "FILE",
            "ONNX: write the simulated training step to FILE (Perfetto trace)");
  add_report_flags(*command, flags.output,
                   "the names of the nodes of every stage (Aceso: its configuration)");
  command->footer(
      "Every stage has consecutive nodes of the graph: whatever a stage reads is computed there "
      "or\n"
      "in an earlier stage. The result is the partition with the fastest slowest stage.\n"
      "dnn-partitioning: a stage is one device; its load is the compute time, and on accelerators\n"
      "the transfers between the stage and others. For the latency, a stage starts when all that "
      "it\n"
      "reads is there, and hosts compute any number of nodes at the same time.\n"
      "Piper: stages have data and tensor parallelism, and nodes have variants, such as with\n"
      "recomputation, of which the fastest that fit in memory are used.\n"
      "PipeDream: stages have data parallelism, and transfers overlap with computation.\n"
      "Aceso: every operator of a stage has its own tensor-parallel degree and recomputation; the\n"
      "training step is the fastest that fits.\n"
      "IOPDDL: every operator gets one of its sharding strategies, such that costs of operators "
      "and\n"
      "resharding are least and the memory in use at any time is within the limit.\n"
      "ONNX: operators are priced on the devices of a cluster; training as Piper's graphs with "
      "data\n"
      "parallelism and recomputation, --inference as those of dnn-partitioning. Nodes that "
      "compute\n"
      "shapes, constants and layouts of weights belong to no stage.\n\n"
      "Examples:\n"
      "  meshwright partition gnmt_inference.json\n"
      "  meshwright partition gnmt_inference.json --objective latency\n"
      "  meshwright partition resnet50_training.json --devices 12 --hosts 0 -o stages.json\n"
      "  meshwright partition bert32a100.json --devices 512 --memory 8GiB --bandwidth 25GiB/s\n"
      "  meshwright partition graph.txt --devices 4x4 --bandwidth 12GB/s,1.25GB/s\n"
      "  meshwright partition profiles/gpt_13B --layers 40 --devices 8x4 --memory 28000MiB \\\n"
      "    --global-batch 1024\n"
      "  meshwright partition resnet50.onnx --cluster dgx-a100 --dim batch=32");
  return command;
}

/// A flag that has no meaning for the format of the graph.
void refuse_if(bool is_given, const char* flag, const char* format) {
  if (is_given)
    refuse_flag(flag, fmt::format("cannot be used with a graph of {}", format), "remove it");
}

void refuse_if_given(const std::optional<int>& value, const char* flag) {
  if (value) refuse_flag(flag, "can only be used with tables of Aceso", "remove it");
}

int device_count(const PartitionFlags& flags) {
  return static_cast<int>(parse_count("--devices", flags.devices, kAcceleratorRange));
}

/// "8", or "4x4": counts of every level.
std::vector<std::string> split_levels(std::string sizes) {
  std::replace(sizes.begin(), sizes.end(), 'x', ',');
  const auto counts = split_at_commas(sizes);
  return {counts.begin(), counts.end()};
}

/// "4x4" and "12GB/s,1.25GB/s".
std::vector<PipeDreamLevel> levels_of(const PartitionFlags& flags) {
  for (const auto& [flag, value] :
       {std::pair("--devices", &flags.devices), std::pair("--bandwidth", &flags.bandwidth)})
    if (value->empty())
      refuse_flag(flag, "missing required option: the graph of PipeDream has no devices",
                  "set --devices and --bandwidth, such as --devices 4 --bandwidth 1GB/s");
  const auto counts = split_levels(flags.devices);
  const auto rates = split_at_commas(flags.bandwidth);
  if (counts.size() != rates.size() || counts.size() > kMostPipeDreamLevels)
    refuse_flag("--bandwidth",
                fmt::format("expected one value per level of '--devices {}' ({}), got {}",
                            flags.devices, counts.size(), rates.size()),
                fmt::format("separate values by commas; at most {} levels", kMostPipeDreamLevels));
  std::vector<PipeDreamLevel> levels;
  for (std::size_t level = 0; level < counts.size(); ++level)
    levels.push_back(
        {.size = static_cast<int>(parse_count("--devices", counts[level], kPipeDreamLevelRange)),
         .bandwidth = parse_bandwidth(rates[level], "--bandwidth")});
  return levels;
}

void apply(const PartitionFlags& flags, PipeDreamProblem& problem) {
  refuse_if(flags.hosts.has_value(), "--hosts", "PipeDream");
  refuse_if(!flags.memory.empty(), "--memory", "PipeDream");
  refuse_if(flags.microbatches.has_value(), "--microbatches", "PipeDream");
  problem.levels = levels_of(flags);
}

void apply(const PartitionFlags& flags, PartitionProblem& problem) {
  refuse_if(!flags.bandwidth.empty(), "--bandwidth", "dnn-partitioning");
  refuse_if(flags.microbatches.has_value(), "--microbatches", "dnn-partitioning");
  if (!flags.devices.empty()) problem.accelerators = device_count(flags);
  if (flags.hosts) problem.hosts = *flags.hosts;
  if (!flags.memory.empty()) problem.accelerator_memory = parse_bytes(flags.memory, "--memory");
  if (problem.hosts > kHostRange.largest)
    refuse_flag("--hosts", fmt::format("{} hosts in the file, more than supported", problem.hosts),
                fmt::format("set it to at most {}", kHostRange.largest));
  if (problem.accelerators + problem.hosts == 0)
    refuse_flag("--devices", "no devices to partition the graph over", "set it to at least 1");
}

void apply(const PartitionFlags& flags, ReplicationProblem& problem) {
  refuse_if(flags.hosts.has_value(), "--hosts", "Piper");
  if (!flags.devices.empty()) problem.devices = device_count(flags);
  if (flags.microbatches) problem.microbatches = *flags.microbatches;
  if (!flags.memory.empty()) problem.device_memory = parse_bytes(flags.memory, "--memory");
  if (!flags.bandwidth.empty()) problem.bandwidth = parse_bandwidth(flags.bandwidth, "--bandwidth");
  if (problem.devices == 0)
    refuse_flag("--devices", "no devices to partition the graph over", "set it to at least 1");
}

Outcome no_partition(const Document& report, const OutputFlags& output) {
  Outcome outcome = outcome_of(report, output);
  outcome.exit_code = kExitNoPlanFits;
  return outcome;
}

template <class Partition>
Outcome show(const PartitionFlags& flags, const PartitionProblem& problem,
             const std::optional<Partition>& partition) {
  if (!partition)
    return no_partition(flags.output.json ? no_partition_json(problem) : no_partition_text(problem),
                        flags.output);
  if (!flags.output.file.empty())
    write_file(flags.output.file, stage_map_json(partition->stages, problem));
  if (flags.output.file == "-") return {};
  return outcome_of(flags.output.json ? partition_json(*partition, problem)
                                      : partition_text(*partition, problem, flags.graph),
                    flags.output);
}

Outcome show(const PartitionFlags& flags, const ReplicationProblem& problem,
             const std::optional<ReplicationPartition>& partition, const Document& step = {}) {
  if (!partition)
    return no_partition(
        flags.output.json ? no_replication_json(problem) : no_replication_text(problem),
        flags.output);
  if (!flags.output.file.empty())
    write_file(flags.output.file, stage_map_json(*partition, problem));
  if (flags.output.file == "-") return {};
  return outcome_of(flags.output.json ? replication_json(*partition, problem)
                                      : replication_text(*partition, problem, flags.graph) + step,
                    flags.output);
}

bool is_for_latency(const PartitionFlags& flags) { return flags.objective == "latency"; }

Outcome partition(const PartitionFlags& flags, const PartitionProblem& problem) {
  if (!is_for_latency(flags)) return show(flags, problem, partition_for_throughput(problem));
  for (const PartitionNode& node : problem.nodes)
    if (node.is_backward)
      refuse_flag(
          "--objective",
          fmt::format("the graph is one of training: node '{}' is a backward node", node.name),
          "use a graph of inference, or '--objective throughput'");
  return show(flags, problem, partition_for_latency(problem));
}

Outcome partition(const PartitionFlags& flags, const ReplicationProblem& problem) {
  return show(flags, problem, partition_with_replication(problem));
}

Outcome partition(const PartitionFlags& flags, const PipeDreamProblem& problem) {
  const PipeDreamPartition partition = partition_as_pipedream(problem);
  if (!flags.output.file.empty()) write_file(flags.output.file, stage_map_json(partition, problem));
  if (flags.output.file == "-") return {};
  return outcome_of(flags.output.json ? pipedream_json(partition, problem)
                                      : pipedream_text(partition, problem, flags.graph),
                    flags.output);
}

void apply(const PartitionFlags& flags, ShardingProblem& problem) {
  refuse_if(!flags.devices.empty(), "--devices", "IOPDDL");
  refuse_if(flags.hosts.has_value(), "--hosts", "IOPDDL");
  refuse_if(!flags.bandwidth.empty(), "--bandwidth", "IOPDDL");
  refuse_if(flags.microbatches.has_value(), "--microbatches", "IOPDDL");
  if (!flags.memory.empty()) problem.usage_limit = parse_bytes(flags.memory, "--memory").value;
}

Outcome with_interruption(Outcome outcome, const char* result) {
  if (!is_interrupted()) return outcome;
  outcome.exit_code = kExitInterrupted;
  outcome.notes += fmt::format("interrupted: {}\n", result);
  return outcome;
}

Outcome partition(const PartitionFlags& flags, const ShardingProblem& problem) {
  const PartialResults partial_results;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const double seconds = flags.time_limit.value_or(10);
  ShardingOptions options{.steps = INT64_MAX};
  options.time_used = [&] {
    if (is_interrupted()) return 1.0;
    return std::chrono::duration<double>(Clock::now() - begin).count() / seconds;
  };
  const ShardingResult result = search_sharding(problem, options);
  if (!result.best) stop_if_interrupted();
  if (!flags.output.file.empty() && result.best)
    write_file(flags.output.file, strategies_json(*result.best));
  Outcome outcome;
  if (flags.output.file != "-" || !result.best)
    outcome = outcome_of(flags.output.json ? sharding_json(result, problem)
                                           : sharding_text(result, problem, flags.graph),
                         flags.output);
  if (!result.best) outcome.exit_code = kExitNoPlanFits;
  return with_interruption(std::move(outcome), "the best choice so far");
}

/// The report about a partition of a model, and notes about the model itself.
Outcome with_notes(Outcome outcome, const PricedModel& model, std::size_t groups,
                   const OutputFlags& output) {
  if (output.json && !outcome.text.empty())
    outcome.text = with_model(outcome.text, model, groups);
  else
    outcome.notes = model_notes(model, groups) + outcome.notes;
  return outcome;
}

Outcome partition_training(const PartitionFlags& flags, const PricedModel& model,
                           const std::string& where) {
  const auto priced = price_training(model.graph, *model.cost, model.devices, where);
  const std::size_t groups =
      priced.is_exact ? model.graph.nodes.size() : std::size_t{kMostTrainingGroups};
  const auto partition = partition_with_replication(priced.problem, kMostTrainingDownSets);
  if (!partition) return with_notes(show(flags, priced.problem, {}), model, groups, flags.output);
  const TrainingPartition all = expand(model.graph, priced, *partition);
  const std::optional<Prediction> step = partition_step(model, priced, all);
  if (!flags.timeline.empty() && !step)
    refuse_flag(
        "--timeline",
        fmt::format("{} micro-batches are too many to simulate each", all.problem.microbatches),
        "set --microbatches to fewer");
  if (!flags.timeline.empty())
    write_file(flags.timeline, to_pftrace(timeline_of(*step, model, flags.graph)));
  Outcome outcome = show(flags, all.problem, all.partition,
                         step ? step_text(*step, all.problem.microbatches) : Document());
  if (flags.output.json && !outcome.text.empty()) outcome.text = with_step(outcome.text, step);
  return with_notes(std::move(outcome), model, groups, flags.output);
}

Outcome partition_model(const PartitionFlags& flags, const NamedText& file) {
  refuse_if(flags.hosts.has_value(), "--hosts", "ONNX");
  refuse_if(!flags.bandwidth.empty(), "--bandwidth", "ONNX");
  DeviceFlags devices{.microbatches = flags.microbatches};
  if (!flags.devices.empty()) devices.devices = device_count(flags);
  if (!flags.memory.empty()) devices.memory = parse_bytes(flags.memory, "--memory");
  const PricedModel model = price_model(file, flags.model, devices);
  if (!flags.model.costs_file.empty()) write_file(flags.model.costs_file, node_costs_csv(model));
  if (flags.model.inference) {
    refuse_if(!flags.timeline.empty(), "--timeline", "ONNX for inference");
    const PartitionProblem problem =
        price_inference(model.graph, *model.cost, model.devices, file.where);
    const std::size_t groups = std::min(model.graph.nodes.size(), kMostInferenceGroups);
    if (is_for_latency(flags))
      return with_notes(show(flags, problem, partition_for_latency(problem)), model, groups,
                        flags.output);
    std::optional<ThroughputPartition> found = partition_for_throughput(problem);
    if (found) found = expand(model.graph, problem, std::move(*found));
    return with_notes(show(flags, problem, found), model, groups, flags.output);
  }
  refuse_if(is_for_latency(flags), "--objective", "ONNX for training");
  return partition_training(flags, model, file.where);
}

/// "8", or "8x4": devices per server, and servers.
void set_devices(const PartitionFlags& flags, ChainProblem& problem) {
  const auto counts = split_levels(flags.devices);
  if (counts.size() > 2)
    refuse_flag("--devices", fmt::format("invalid value '{}'", flags.devices),
                "give devices per server x servers, such as 8x4");
  constexpr CountRange kRange{.smallest = 1, .largest = kMostChainDevices};
  const auto count = [&](std::size_t i) {
    return static_cast<int>(parse_count("--devices", counts[i], kRange));
  };
  problem.devices_per_node = count(0);
  problem.nodes = counts.size() == 2 ? count(1) : 1;
  if (problem.devices() > kMostChainDevices)
    refuse_flag("--devices", fmt::format("more than {} devices", kMostChainDevices),
                "use fewer devices");
}

Outcome partition_profile(const PartitionFlags& flags) {
  refuse_if(flags.hosts.has_value(), "--hosts", "Aceso");
  refuse_if(!flags.bandwidth.empty(), "--bandwidth", "Aceso");
  refuse_if(flags.microbatches.has_value(), "--microbatches", "Aceso");
  refuse_if(flags.time_limit.has_value(), "--time-limit", "Aceso");
  refuse_if(!flags.timeline.empty(), "--timeline", "Aceso");
  refuse_if(!flags.objective.empty(), "--objective", "Aceso");
  refuse_model_graph_flags(flags.model);
  for (const auto& [flag, is_given] : {std::pair("--devices", !flags.devices.empty()),
                                       std::pair("--memory", !flags.memory.empty()),
                                       std::pair("--global-batch", flags.global_batch.has_value())})
    if (!is_given)
      refuse_flag(flag, "missing required option: the tables of Aceso have no cluster and batch",
                  "set --devices, --memory and --global-batch, such as --devices 8x4 --memory "
                  "28000MiB --global-batch 1024");
  ChainProblem problem = read_aceso(flags.graph, flags.layers);
  set_devices(flags, problem);
  problem.device_memory = parse_bytes(flags.memory, "--memory");
  problem.global_batch = *flags.global_batch;
  const PartialResults partial_results;
  const auto partition = partition_chain(problem, is_interrupted);
  if (!partition) {
    stop_if_interrupted();
    return no_partition(flags.output.json ? no_chain_json(problem) : no_chain_text(problem),
                        flags.output);
  }
  if (!flags.output.file.empty())
    write_file(flags.output.file, aceso_json(*partition, problem, flags.graph, flags.layers));
  Outcome outcome;
  if (flags.output.file != "-")
    outcome = outcome_of(flags.output.json ? chain_json(*partition, problem)
                                           : chain_text(*partition, problem, flags.graph),
                         flags.output);
  return with_interruption(std::move(outcome), "the best plan so far");
}

Outcome run_partition(const PartitionFlags& flags) {
  if (flags.graph.empty())
    refuse_flag("GRAPH", "missing required argument", "run 'meshwright partition --help'");
  if (is_aceso_profile(flags.graph)) return partition_profile(flags);
  refuse_if_given(flags.layers, "--layers");
  refuse_if_given(flags.global_batch, "--global-batch");
  const NamedText file = read_graph_file(flags.graph);
  if (is_model_graph(file)) return partition_model(flags, file);
  refuse_model_graph_flags(flags.model);
  OperatorGraph graph = read_operator_graph(file);
  if (!std::holds_alternative<PartitionProblem>(graph) && !flags.objective.empty())
    refuse_flag("--objective", "can only be used with a graph of dnn-partitioning or an ONNX model",
                "remove it");
  if (!std::holds_alternative<ShardingProblem>(graph) && flags.time_limit)
    refuse_flag("--time-limit", "can only be used with a graph of IOPDDL", "remove it");
  if (!flags.timeline.empty())
    refuse_flag("--timeline", "can only be used with an ONNX or PyTorch model", "remove it");
  return std::visit(
      [&](auto& problem) {
        apply(flags, problem);
        return partition(flags, problem);
      },
      graph);
}

}  // namespace

Command partition_command(CLI::App& app) {
  return make_command(app, add_partition_command, run_partition);
}

}  // namespace meshwright
