#include "cli/partition/partition_report.hpp"

#include <fmt/format.h>

#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

/// What is as small as possible, whatever the objective.
struct Certificate {
  const char* name;  ///< "time per sample"
  const char* key;   ///< in JSON
  Ticks value, lower_bound;
  std::int64_t down_sets, extensions;

  bool is_optimal() const { return value == lower_bound; }
  double gap() const { return lower_bound.value == 0 ? 0 : ratio(value, lower_bound) - 1; }
};

Certificate certificate_of(const ThroughputPartition& partition) {
  return {"time per sample",     "load_ns",           partition.load,
          partition.lower_bound, partition.down_sets, partition.extensions};
}

Certificate certificate_of(const LatencyPartition& partition) {
  return {"latency of a sample", "latency_ns",        partition.latency,
          partition.lower_bound, partition.down_sets, partition.extensions};
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

Document report_text(const Certificate& found, const std::vector<PartitionStage>& stages,
                     const PartitionProblem& problem, const std::string& name) {
  std::string text = fmt::format("{}: {}, {}, {}\n", name, count_text(problem.nodes.size(), "node"),
                                 count_text(problem.edges.size(), "edge"), devices_text(problem));
  const std::string verdict = found.is_optimal()
                                  ? "optimal over contiguous stages"
                                  : fmt::format("within {:.3g} % of the lower bound {}",
                                                100 * found.gap(), to_text(found.lower_bound));
  text += fmt::format("{}: {:.6f} ms, {}\n", found.name, nanoseconds(found.value) / 1e6, verdict);
  text += fmt::format("searched: {} down-sets, {} stages\n\n", grouped(found.down_sets),
                      grouped(found.extensions));
  Table table = empty_table("stage", left_aligned("device"), "nodes", "load", "memory",
                            left_aligned("first node"));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const PartitionStage& stage = stages[s];
    table.rows.push_back({fmt::format("{}", s), stage.on_host ? "host" : "accelerator",
                          grouped(static_cast<std::int64_t>(stage.nodes.size())),
                          fmt::format("{:.6f} ms", nanoseconds(stage.load) / 1e6),
                          to_text(stage.memory),
                          problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name});
  }
  return Document(std::move(text)) + std::move(table);
}

std::string report_json(const Certificate& found, const std::vector<PartitionStage>& stages,
                        const PartitionProblem& problem) {
  Json list = Json::array();
  for (const PartitionStage& stage : stages)
    list.push_back({{"device", stage.on_host ? "host" : "accelerator"},
                    {"load_ns", nanoseconds(stage.load)},
                    {"memory_bytes", stage.memory.value},
                    {"nodes", names_of(stage, problem)}});
  return json_text(Json{{"schema", 1},
                        {"accelerators", problem.accelerators},
                        {"hosts", problem.hosts},
                        {found.key, nanoseconds(found.value)},
                        {"lower_bound_ns", nanoseconds(found.lower_bound)},
                        {"gap", found.gap()},
                        {"proved_optimal", found.is_optimal()},
                        {"down_sets", found.down_sets},
                        {"priced_stages", found.extensions},
                        {"stages", std::move(list)},
                        {"infeasible", nullptr}});
}

}  // namespace

Document partition_text(const ThroughputPartition& partition, const PartitionProblem& problem,
                        const std::string& name) {
  return report_text(certificate_of(partition), partition.stages, problem, name);
}
Document partition_text(const LatencyPartition& partition, const PartitionProblem& problem,
                        const std::string& name) {
  return report_text(certificate_of(partition), partition.stages, problem, name);
}

std::string partition_json(const ThroughputPartition& partition, const PartitionProblem& problem) {
  return report_json(certificate_of(partition), partition.stages, problem);
}
std::string partition_json(const LatencyPartition& partition, const PartitionProblem& problem) {
  return report_json(certificate_of(partition), partition.stages, problem);
}

std::string stage_map_json(const std::vector<PartitionStage>& stages,
                           const PartitionProblem& problem) {
  Json map = Json::object();
  for (std::size_t s = 0; s < stages.size(); ++s)
    map[fmt::format("{}", s)] = names_of(stages[s], problem);
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
