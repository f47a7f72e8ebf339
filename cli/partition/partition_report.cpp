#include "cli/partition/partition_report.hpp"

#include <fmt/format.h>

#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

double gap(const ThroughputPartition& partition) {
  return partition.lower_bound.value == 0 ? 0 : ratio(partition.load, partition.lower_bound) - 1;
}

double nanoseconds(Ticks time) {
  return static_cast<double>(time.value) / static_cast<double>(kTicksPerNanosecond);
}

std::vector<std::string> names_of(const PartitionStage& stage, const PartitionProblem& problem) {
  std::vector<std::string> names;
  for (const std::int32_t node : stage.nodes)
    names.push_back(problem.nodes[static_cast<std::size_t>(node)].name);
  return names;
}

std::string devices_text(const PartitionProblem& problem) {
  const auto count = [](int n, const char* noun) {
    return count_text(static_cast<std::size_t>(n), noun);
  };
  const std::string accelerators = count(problem.accelerators, "accelerator");
  return problem.hosts == 0 ? accelerators : accelerators + " and " + count(problem.hosts, "host");
}

}  // namespace

Document partition_text(const ThroughputPartition& partition, const PartitionProblem& problem,
                        const std::string& name) {
  std::string text = fmt::format("{}: {}, {}, {}\n", name, count_text(problem.nodes.size(), "node"),
                                 count_text(problem.edges.size(), "edge"), devices_text(problem));
  const std::string verdict =
      partition.load == partition.lower_bound
          ? "optimal over contiguous stages"
          : fmt::format("within {:.3g} % of the lower bound {}", 100 * gap(partition),
                        to_text(partition.lower_bound));
  text +=
      fmt::format("time per sample: {:.6f} ms, {}\n", nanoseconds(partition.load) / 1e6, verdict);
  text += fmt::format("searched: {} down-sets, {} stages\n\n", grouped(partition.down_sets),
                      grouped(partition.extensions));
  Table table = empty_table("stage", left_aligned("device"), "nodes", "load", "memory",
                            left_aligned("first node"));
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    const PartitionStage& stage = partition.stages[s];
    table.rows.push_back({fmt::format("{}", s), stage.on_host ? "host" : "accelerator",
                          grouped(static_cast<std::int64_t>(stage.nodes.size())),
                          fmt::format("{:.6f} ms", nanoseconds(stage.load) / 1e6),
                          to_text(stage.memory),
                          problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name});
  }
  return Document(std::move(text)) + std::move(table);
}

std::string partition_json(const ThroughputPartition& partition, const PartitionProblem& problem) {
  Json stages = Json::array();
  for (const PartitionStage& stage : partition.stages)
    stages.push_back({{"device", stage.on_host ? "host" : "accelerator"},
                      {"load_ns", nanoseconds(stage.load)},
                      {"memory_bytes", stage.memory.value},
                      {"nodes", names_of(stage, problem)}});
  return json_text(Json{{"schema", 1},
                        {"accelerators", problem.accelerators},
                        {"hosts", problem.hosts},
                        {"load_ns", nanoseconds(partition.load)},
                        {"lower_bound_ns", nanoseconds(partition.lower_bound)},
                        {"gap", gap(partition)},
                        {"proved_optimal", partition.load == partition.lower_bound},
                        {"down_sets", partition.down_sets},
                        {"priced_stages", partition.extensions},
                        {"stages", std::move(stages)},
                        {"infeasible", nullptr}});
}

std::string stage_map_json(const ThroughputPartition& partition, const PartitionProblem& problem) {
  Json map = Json::object();
  for (std::size_t s = 0; s < partition.stages.size(); ++s)
    map[fmt::format("{}", s)] = names_of(partition.stages[s], problem);
  return json_text(map);
}

namespace {

std::string reason_of_no_partition(const PartitionProblem& problem) {
  if (problem.hosts == 0)
    for (const PartitionNode& node : problem.nodes)
      if (!node.runs_on_accelerator)
        return fmt::format("node '{}' runs on hosts only, and there are none", node.name);
  Bytes total;
  for (const PartitionNode& node : problem.nodes) total += node.memory;
  return fmt::format("the nodes need {} of memory together, {} accelerators have {} each",
                     to_text(total), problem.accelerators, to_text(problem.accelerator_memory));
}

}  // namespace

std::string no_partition_text(const PartitionProblem& problem) {
  return fmt::format("No partition found: {}.\nUse more accelerators, or set --hosts.\n",
                     reason_of_no_partition(problem));
}

std::string no_partition_json(const PartitionProblem& problem) {
  return infeasible_json(reason_of_no_partition(problem));
}

}  // namespace meshwright
