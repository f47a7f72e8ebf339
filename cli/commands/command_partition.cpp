#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/partition/partition_report.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/formats/file.hpp"
#include "models/graphs/graph_files.hpp"

namespace meshwright {
namespace {

constexpr CountRange kAcceleratorRange{.smallest = 0, .largest = kMostPartitionDevices};
constexpr CountRange kHostRange{.smallest = 0, .largest = 64};

struct PartitionFlags {
  std::string graph, memory;
  std::optional<int> devices, hosts;
  OutputFlags output;
};

CLI::App* add_partition_command(CLI::App& app, PartitionFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "partition", "Partition an operator graph over devices, with the best throughput.");
  add_value(*command, "GRAPH", flags.graph, "FILE",
            "operator graph: JSON of msr-fiddle/dnn-partitioning; -: standard input");
  {
    const OptionGroup group(*command, "Devices");
    add_count(*command, "--devices", flags.devices, kAcceleratorRange,
              "number of accelerators (default: of the file)");
    add_count(*command, "--hosts", flags.hosts, kHostRange,
              "number of host processors that can run a stage (default: of the file)");
    add_value(*command, "--memory", flags.memory, "SIZE",
              "memory per accelerator, such as 16GiB (default: of the file)");
  }
  add_output_flags(*command, flags.output, "the names of the nodes of every stage");
  command->footer(
      "Every stage has consecutive nodes of the graph: whatever a stage reads is computed there "
      "or\n"
      "in an earlier stage. The load of a device is its compute time, and on accelerators the\n"
      "transfers between its stage and others; the time per sample is the largest load.\n\n"
      "Examples:\n"
      "  meshwright partition gnmt_inference.json\n"
      "  meshwright partition resnet50_training.json --devices 12 --hosts 0 -o stages.json");
  return command;
}

PartitionProblem problem_of(const PartitionFlags& flags) {
  if (flags.graph.empty())
    refuse_flag("GRAPH", "missing required argument", "run 'meshwright partition --help'");
  const std::string where = flags.graph == "-" ? "standard input" : flags.graph;
  PartitionProblem problem =
      read_dnn_partitioning({.name = where, .where = where, .text = read_file(flags.graph)});
  if (flags.devices) problem.accelerators = *flags.devices;
  if (flags.hosts) problem.hosts = *flags.hosts;
  if (!flags.memory.empty()) problem.accelerator_memory = parse_bytes(flags.memory, "--memory");
  if (problem.hosts > kHostRange.largest)
    refuse_flag("--hosts", fmt::format("{} hosts in the file, more than supported", problem.hosts),
                fmt::format("set it to at most {}", kHostRange.largest));
  if (problem.accelerators + problem.hosts == 0)
    refuse_flag("--devices", "no devices to partition the graph over", "set it to at least 1");
  return problem;
}

Outcome run_partition(const PartitionFlags& flags) {
  const PartitionProblem problem = problem_of(flags);
  const std::optional<ThroughputPartition> partition = partition_for_throughput(problem);
  if (!partition)
    return {.text = flags.output.json ? no_partition_json(problem) : no_partition_text(problem),
            .exit_code = kExitNoPlanFits};
  if (!flags.output.file.empty())
    write_file(flags.output.file, stage_map_json(*partition, problem));
  if (flags.output.file == "-") return {};
  return {.text = flags.output.json ? partition_json(*partition, problem)
                                    : partition_text(*partition, problem, flags.graph)};
}

}  // namespace

Command partition_command(CLI::App& app) {
  return make_command(app, add_partition_command, run_partition);
}

}  // namespace meshwright
