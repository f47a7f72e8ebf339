#include "executor/tasks/forward_tasks.hpp"

#include <set>

#include "executor/tasks/runnable_graph.hpp"
#include "executor/tasks/sharded_lifetimes.hpp"

namespace meshwright {
namespace {

/// Whether the collective may gather weights: all that moves parameters, except reductions.
bool may_gather(const TaskGraph& graph, const Task& task) {
  if (task.kind != TaskKind::kCollective) return false;
  const Collective& collective = graph.works[task.work.index()].collective;
  const bool is_second_half = collective.kind == CollectiveKind::kRingExchange &&
                              collective.first_round >= collective.group.ranks - 1;
  return collective.axis == Axis::kData && collective.parameters.part >= 0 &&
         (collective.kind == CollectiveKind::kAllGather || is_second_half);
}

/// Adds the gathers that must precede a task.
void add_gathers_before(const TaskGraph& graph, TaskId id, std::set<TaskId>& kept) {
  for (const TaskId before : graph.dependencies_of(id))
    if (may_gather(graph, graph.tasks[before.index()]) && kept.insert(before).second)
      add_gathers_before(graph, before, kept);
}

}  // namespace

std::vector<TaskId> forward_tasks(const RunnableGraph& runnable, RankId rank) {
  const TaskGraph& graph = runnable.graph();
  const std::vector<TaskId>& all = runnable.tasks_of(rank);
  const GatheredWeights gathered(runnable, all);
  std::set<TaskId> kept;
  for (const TaskId id : all) {
    const Task& task = graph.tasks[id.index()];
    const bool is_message = task.kind == TaskKind::kSend || task.kind == TaskKind::kReceive;
    const TaskId user = gathered.pass_of(id);
    const bool is_forward_gather =
        user.value >= 0 && graph.tasks[user.index()].kind == TaskKind::kForward;
    if (task.kind == TaskKind::kForward) add_gathers_before(graph, id, kept);
    if (task.kind == TaskKind::kForward || is_forward_gather ||
        (is_message && !runnable.carries_gradient(id)))
      kept.insert(id);
  }
  std::vector<TaskId> tasks;
  for (const TaskId id : all)
    if (kept.contains(id)) tasks.push_back(id);
  return tasks;
}

}  // namespace meshwright
