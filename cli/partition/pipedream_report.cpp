#include "cli/partition/pipedream_report.hpp"

#include <fmt/format.h>

#include "cli/partition/report_json.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

constexpr double kMillisecondsPerSecond = 1e3, kNanosecondsPerSecond = 1e9;

bool is_optimal(const PipeDreamPartition& partition) {
  return partition.time == partition.lower_bound;
}

double gap(const PipeDreamPartition& partition) {
  return partition.lower_bound.value == 0 ? 0 : ratio(partition.time, partition.lower_bound) - 1;
}

std::vector<std::string> names_of(const PipeDreamStage& stage, const PipeDreamProblem& problem) {
  std::vector<std::string> names;
  for (const std::int32_t node : stage.nodes)
    names.push_back(problem.nodes[static_cast<std::size_t>(node)].name);
  return names;
}

/// "1 device", "4 x 4 devices"
std::string pipedream_devices(const PipeDreamProblem& problem) {
  std::vector<int> sizes;
  for (const PipeDreamLevel& level : problem.levels) sizes.push_back(level.size);
  const bool is_one = sizes == std::vector<int>{1};
  return fmt::format("{} {}", fmt::join(sizes, " x "), is_one ? "device" : "devices");
}

/// Stages inside of a stage follow it: "1", "1.0", "1.1".
void add_rows(const std::vector<PipeDreamStage>& stages, const std::string& prefix,
              const PipeDreamProblem& problem, Table& table) {
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const PipeDreamStage& stage = stages[s];
    const std::string number = fmt::format("{}{}", prefix, s);
    table.rows.push_back({number, grouped(static_cast<std::int64_t>(stage.nodes.size())),
                          fmt::format("{}", stage.replicas),
                          fmt::format("{:.6f} ms", stage.time.value * kMillisecondsPerSecond),
                          problem.nodes[static_cast<std::size_t>(stage.nodes.front())].name});
    add_rows(stage.inner, number + ".", problem, table);
  }
}

Json stages_json(const std::vector<PipeDreamStage>& stages, const PipeDreamProblem& problem) {
  Json list = Json::array();
  for (const PipeDreamStage& stage : stages) {
    list.push_back({{"replicas", stage.replicas},
                    {"time_ns", stage.time.value * kNanosecondsPerSecond},
                    {"nodes", names_of(stage, problem)}});
    if (!stage.inner.empty()) list.back()["inner"] = stages_json(stage.inner, problem);
  }
  return list;
}

void add_to_map(const std::vector<PipeDreamStage>& stages, const PipeDreamProblem& problem,
                Json& map) {
  for (const PipeDreamStage& stage : stages)
    if (stage.inner.empty())
      map[fmt::format("{}", map.size())] = names_of(stage, problem);
    else
      add_to_map(stage.inner, problem, map);
}

}  // namespace

Document pipedream_text(const PipeDreamPartition& partition, const PipeDreamProblem& problem,
                        const std::string& name) {
  std::string text =
      fmt::format("{}: {}, {}, {}\n", name, count_text(problem.nodes.size(), "node"),
                  count_text(problem.edges.size(), "edge"), pipedream_devices(problem));
  const std::string verdict =
      is_optimal(partition) ? "optimal over contiguous stages"
                            : fmt::format("within {:.3g} % of the lower bound {}",
                                          100 * gap(partition), to_text(partition.lower_bound));
  text += fmt::format("time per minibatch: {:.6f} ms, {}\n",
                      partition.time.value * kMillisecondsPerSecond, verdict);
  text += fmt::format("searched: {} cuts\n\n", grouped(partition.cuts));
  Table table =
      empty_table(left_aligned("stage"), "nodes", "replicas", "time", left_aligned("first node"));
  add_rows(partition.stages, "", problem, table);
  return Document(std::move(text)) + std::move(table);
}

std::string pipedream_json(const PipeDreamPartition& partition, const PipeDreamProblem& problem) {
  Json levels = Json::array();
  for (const PipeDreamLevel& level : problem.levels)
    levels.push_back({{"size", level.size}, {"bandwidth_bytes_per_second", level.bandwidth.value}});
  return json_text(Json{{"schema", 1},
                        {"levels", std::move(levels)},
                        {"time_per_minibatch_ns", partition.time.value * kNanosecondsPerSecond},
                        {"lower_bound_ns", partition.lower_bound.value * kNanosecondsPerSecond},
                        {"gap", gap(partition)},
                        {"proved_optimal", is_optimal(partition)},
                        {"cuts", partition.cuts},
                        {"stages", stages_json(partition.stages, problem)},
                        {"infeasible", nullptr}});
}

std::string stage_map_json(const PipeDreamPartition& partition, const PipeDreamProblem& problem) {
  Json map = Json::object();
  add_to_map(partition.stages, problem, map);
  return json_text(map);
}

}  // namespace meshwright
