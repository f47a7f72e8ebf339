#include "cli/plan/node_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/reports/report.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

using NodesJson = nlohmann::ordered_json;

PlanFigures figures_of_best(const RankedPlan& best) {
  return figures_of(best.plan.strategy, best.evaluation, best.why);
}

/// The best plans first, what fits nowhere last.
std::vector<const BestOfNodes*> best_first(const PlanSearch& search) {
  std::vector<const BestOfNodes*> sorted;
  for (const BestOfNodes& best : search.result.by_nodes) sorted.push_back(&best);
  std::ranges::stable_sort(sorted, {}, [](const BestOfNodes* best) {
    return best->best ? best->best->evaluation.step_time : Ticks::max();
  });
  return sorted;
}

/// Blocks by pipeline rank: "23 57".
std::string blocks_text(const Plan& plan) {
  const Placement placement = placement_of(plan);
  std::vector<int> blocks(static_cast<std::size_t>(placement.devices), 0);
  for (std::size_t stage = 0; stage < placement.device_of_stage.size(); ++stage)
    blocks[placement.device_of_stage[stage].index()] +=
        plan.blocks_per_stage[static_cast<std::size_t>(placement.part_of_stage[stage])];
  return fmt::format("{}", fmt::join(blocks, " "));
}

std::string unused_text(const PlanSearch& search) {
  const RankedPlan& first = search.result.plans.front();
  const std::int64_t unused = search.goal.gpus - first.evaluation.job_ranks;
  if (unused <= 0) return "";
  return fmt::format("Plan 1 leaves {} of {} GPUs unused: no plan found is faster with them.\n",
                     unused, search.goal.gpus);
}

}  // namespace

std::string nodes_text(const std::vector<NodeGroup>& nodes) {
  std::string text;
  for (const NodeGroup& group : nodes)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", group.count, group.node);
  return text;
}

Table nodes_column(const PlanSearch& search) {
  if (search.result.by_nodes.empty()) return {};
  Table column = empty_table(left_aligned("nodes"));
  for (const RankedPlan& row : search.result.plans) column.rows.push_back({nodes_text(row.nodes)});
  return column;
}

Document node_comparison_text(const PlanSearch& search) {
  if (search.result.by_nodes.empty() || search.result.plans.empty()) return "";
  Table table = empty_table(left_aligned("nodes"), "GPUs", left_aligned("parallelism"),
                            left_aligned("blocks per rank"), "step", "tokens/s", "vs plan 1",
                            "peak memory", "of");
  const Ticks fastest = search.result.plans.front().evaluation.step_time;
  std::string without;
  for (const BestOfNodes* best : best_first(search)) {
    if (!best->best) {
      without += fmt::format("{} on {}.\n",
                             best->proved_optimal ? "No plan fits" : "No plan found in time",
                             nodes_text(best->nodes));
      continue;
    }
    if (!best->proved_optimal)
      without += fmt::format("The plan on {} is not proved optimal: the search was stopped.\n",
                             nodes_text(best->nodes));
    const Evaluation& e = best->best->evaluation;
    const PlanFigures f = figures_of_best(*best->best);
    constexpr double kPercent = 100;
    table.rows.push_back({nodes_text(best->nodes), std::to_string(e.job_ranks),
                          split_text(f.strategy), blocks_text(best->best->plan),
                          to_text(f.step_time),
                          grouped(static_cast<std::int64_t>(f.tokens_per_second_per_gpu *
                                                            static_cast<double>(e.job_ranks))),
                          fmt::format("{:+.1f} %", kPercent * (ratio(e.step_time, fastest) - 1)),
                          to_text(f.peak_memory), to_text(f.memory_capacity)});
  }
  return Document("\nBest plan on each set of nodes, pipeline ranks in the order of the nodes:\n") +
         std::move(table) + without + unused_text(search) + "\n";
}

std::string nodes_json(const std::vector<NodeGroup>& nodes) {
  NodesJson json = NodesJson::array();
  for (const NodeGroup& group : nodes)
    json.push_back({{"node", group.node}, {"count", group.count}});
  return json.dump(-1, ' ', false, NodesJson::error_handler_t::replace);
}

std::string node_comparison_json(const PlanSearch& search) {
  NodesJson json = NodesJson::array();
  for (const BestOfNodes* best : best_first(search)) {
    NodesJson entry{{"nodes", NodesJson::parse(nodes_json(best->nodes))},
                    {"plan", nullptr},
                    {"proved_optimal", best->proved_optimal}};
    if (best->best) entry["plan"] = NodesJson::parse(to_json(figures_of_best(*best->best)));
    json.push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, NodesJson::error_handler_t::replace);
}

}  // namespace meshwright
