#include "executor/tasks/nccl_groups.hpp"

#include "core/plan/rank_groups.hpp"

namespace meshwright {
namespace {

void add_ring(std::set<std::pair<RankId, RankId>>& directions, std::span<const RankId> members) {
  for (std::size_t i = 0; i < members.size(); ++i)
    directions.emplace(members[i], members[(i + 1) % members.size()]);
}

}  // namespace

NcclGroups nccl_groups_of(const RunnableGraph& runnable, const Strategy& strategy) {
  NcclGroups all;
  const auto add = [&](std::span<const RankId> members) {
    if (members.size() > 1) all.groups.emplace(members.begin(), members.end());
  };
  const TaskGraph& graph = runnable.graph();
  const bool rings =
      strategy.degrees.context > 1 && strategy.model_parallelism.context == ContextAlgorithm::kRing;
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
    const AxisGroups groups = axis_groups_of(strategy, RankId(r));
    for (const ProcessGroup& group : kLayerGroups) add(groups.*group.members);
    if (rings) add_ring(all.directions, groups.context);
  }
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (task.kind == TaskKind::kSend)
      all.directions.emplace(runnable.rank_of(task),
                             runnable.rank_of(graph.tasks[runnable.receive_of(TaskId(t)).index()]));
    if (task.kind != TaskKind::kCollective) continue;
    add(runnable.members_of(task));
    if (graph.works[task.work.index()].collective.kind == CollectiveKind::kRingExchange)
      add_ring(all.directions, runnable.members_of(task));
  }
  return all;
}

}  // namespace meshwright
