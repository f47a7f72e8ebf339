#include "cli/partition/replication_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

constexpr double kMilliseconds = 1e3, kNanoseconds = 1e9;  ///< per second

double gap(const ReplicationPartition& partition) {
  if (partition.is_optimal() || partition.lower_bound.value == 0) return 0;
  return ratio(partition.time, partition.lower_bound) - 1;
}

std::vector<std::string> names_of(const ReplicatedStage& stage, const ReplicationProblem& problem) {
  std::vector<std::string> names;
  for (const std::int32_t node : stage.nodes)
    names.push_back(problem.nodes[static_cast<std::size_t>(node)].name);
  return names;
}

/// The names of the variants of all nodes of a stage, each once, in order.
std::vector<std::string> variants_of(const ReplicatedStage& stage,
                                     const ReplicationProblem& problem) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
    const auto& degrees = problem.nodes[static_cast<std::size_t>(stage.nodes[i])].degrees;
    const auto degree = std::find_if(degrees.begin(), degrees.end(),
                                     [&](const auto& d) { return d.degree == stage.tensor; });
    names.push_back(degree->variants[static_cast<std::size_t>(stage.variant[i])].name);
  }
  return names;
}

/// "recomputed 3, stored 2"
std::string counts_text(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::vector<std::string> counts;
  for (auto name = names.begin(); name != names.end();) {
    const auto next = std::upper_bound(name, names.end(), *name);
    counts.push_back(fmt::format("{} {}", *name, next - name));
    name = next;
  }
  return fmt::format("{}", fmt::join(counts, ", "));
}

std::string reason_of_no_replication(const ReplicationProblem& problem) {
  return fmt::format("no stages on at most {} fit in {} per device",
                     count_text(static_cast<std::size_t>(problem.devices), "device"),
                     to_text(problem.device_memory));
}

}  // namespace

Table replicated_stages_table(const ReplicationPartition& partition,
                              const ReplicationProblem& problem, int tensor) {
  Table table = empty_table("stage", "nodes", "data", "tensor", "in flight", "time", "memory",
                            left_aligned("variants"), left_aligned("first node"));
  for (std::size_t s = 0; s < partition.stages.size(); ++s) {
    const ReplicatedStage& stage = partition.stages[s];
    table.rows.push_back({fmt::format("{}", s),
                          grouped(static_cast<std::int64_t>(stage.nodes.size())),
                          fmt::format("{}", stage.data), fmt::format("{}", tensor * stage.tensor),
                          fmt::format("{}", stage.inflight),
                          fmt::format("{:.6g} ms", stage.time.value * kMilliseconds),
                          to_text(stage.memory), counts_text(variants_of(stage, problem)),
                          problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name});
  }
  return table;
}

Document replication_text(const ReplicationPartition& partition, const ReplicationProblem& problem,
                          const std::string& name) {
  std::string text =
      fmt::format("{}: {}, {}, {}, {} per batch\n", name, count_text(problem.nodes.size(), "node"),
                  count_text(problem.edges.size(), "edge"),
                  count_text(static_cast<std::size_t>(problem.devices), "device"),
                  count_text(static_cast<std::size_t>(problem.microbatches), "micro-batch", "es"));
  const std::string verdict =
      partition.is_optimal() ? "optimal over contiguous stages"
                             : fmt::format("within {:.3g} % of the lower bound {}",
                                           100 * gap(partition), to_text(partition.lower_bound));
  text += fmt::format("time per micro-batch: {:.9g} ms, {}\n", partition.time.value * kMilliseconds,
                      verdict);
  text += fmt::format("searched: {} down-sets; used: {}\n\n", grouped(partition.down_sets),
                      count_text(static_cast<std::size_t>(partition.devices), "device"));
  return Document(std::move(text)) + replicated_stages_table(partition, problem);
}

std::string replication_json(const ReplicationPartition& partition,
                             const ReplicationProblem& problem) {
  Json stages = Json::array();
  for (const ReplicatedStage& stage : partition.stages)
    stages.push_back({{"data", stage.data},
                      {"tensor", stage.tensor},
                      {"inflight", stage.inflight},
                      {"time_ns", stage.time.value * kNanoseconds},
                      {"memory_bytes", stage.memory.value},
                      {"nodes", names_of(stage, problem)},
                      {"variants", variants_of(stage, problem)}});
  return json_text(Json{{"schema", 1},
                        {"devices", problem.devices},
                        {"used_devices", partition.devices},
                        {"microbatches", problem.microbatches},
                        {"time_per_microbatch_ns", partition.time.value * kNanoseconds},
                        {"lower_bound_ns", partition.lower_bound.value * kNanoseconds},
                        {"gap", gap(partition)},
                        {"proved_optimal", partition.is_optimal()},
                        {"down_sets", partition.down_sets},
                        {"stages", std::move(stages)},
                        {"infeasible", nullptr}});
}

std::string stage_map_json(const ReplicationPartition& partition,
                           const ReplicationProblem& problem) {
  Json map = Json::object();
  for (std::size_t s = 0; s < partition.stages.size(); ++s)
    map[fmt::format("{}", s)] = names_of(partition.stages[s], problem);
  return json_text(map);
}

std::string no_replication_text(const ReplicationProblem& problem) {
  return fmt::format("No partition found: {}.\nUse more devices, or set --memory.\n",
                     reason_of_no_replication(problem));
}

std::string no_replication_json(const ReplicationProblem& problem) {
  return infeasible_json(reason_of_no_replication(problem));
}

}  // namespace meshwright
