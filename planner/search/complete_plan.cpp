#include <algorithm>
#include <utility>

#include "core/lowering/lower.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/search.hpp"
#include "planner/search/space.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/synthesized_plan.hpp"
#include "planner/search/unequal_stages.hpp"

namespace meshwright {
namespace {

/// The partition that minimizes the time of the slowest stage on the devices of the stages.
std::vector<int> best_cut(const Strategy& strategy, int parts, const ModelGraph& model,
                          const Cluster& cluster, const CostModel& cost_model) {
  const auto times_on = [&](std::int32_t kind) {
    LayerPasses layers = layer_costs(strategy, model, cluster, cost_model.on_nodes(kind)).passes;
    if (find_schedule_rule(strategy.schedule)->output_barriers > 0)
      layers = without_ends(std::move(layers));
    return layer_times(layers, strategy.recompute.kind == RecomputeKind::kFull);
  };
  const std::vector<std::int32_t> kinds = node_kinds_of(strategy, cluster);
  if (kinds.empty()) return cut_blocks(times_on(-1), parts);
  UnequalStages stages;
  stages.of_kind.resize(cluster.groups.size());
  const Placement placement =
      find_schedule_rule(strategy.schedule)->placement(request_of(strategy));
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(parts); ++stage) {
    const std::int32_t kind = kinds[placement.device_of_stage[stage].index()];
    LayerTimes& times = stages.of_kind[static_cast<std::size_t>(kind)];
    if (times == LayerTimes()) times = times_on(kind);
    stages.kind_of_stage.push_back(kind);
  }
  return cut_blocks_for(stages);
}

}  // namespace

Plan complete_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                   const CostModel& cost_model) {
  if (strategy.schedule == kSynthesizedSchedule)
    return best_ordered_plan(strategy, model, cluster, cost_model);
  const ScheduleRule* rule = find_schedule_rule(strategy.schedule);
  const int blocks = block_count(model);
  int parts = 1;
  if (rule != nullptr && strategy.degrees.pipeline >= 1 && strategy.degrees.chunks >= 1 &&
      stage_count(strategy.degrees) <= blocks + 2 && strategy.micro_batch >= 1 &&
      strategy.degrees.data >= 1 && !rule->problem(request_of(strategy)))
    parts = model_parts(rule->placement(request_of(strategy)));
  if (!can_cut(blocks, parts)) parts = 1;
  const Plan even{strategy, even_cut(blocks, parts)};
  if (auto problems = check_plan(even, model, cluster); !problems.empty())
    throw InputError(std::move(problems));
  return {strategy, best_cut(strategy, parts, model, cluster, cost_model)};
}

}  // namespace meshwright
