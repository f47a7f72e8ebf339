#include "core/lowering/folded_graph.hpp"

#include <utility>

namespace meshwright {

TaskId append_task(TaskGraph& graph, const Task& task, std::span<const TaskId> dependencies) {
  graph.tasks.push_back(task);
  graph.dependencies.insert(graph.dependencies.end(), dependencies.begin(), dependencies.end());
  graph.dependency_begin.push_back(static_cast<std::int32_t>(graph.dependencies.size()));
  return TaskId(graph.tasks.size() - 1);
}

void open_collective(FoldedGraph& folded, const CollectiveSpread& spread) {
  folded.graph.collectives.push_back({static_cast<std::int32_t>(folded.graph.tasks.size()), 0});
  folded.spreads.push_back(spread);
}

TaskId append_member(FoldedGraph& folded, Task task, std::span<const TaskId> dependencies) {
  task.kind = TaskKind::kCollective;
  task.partner = static_cast<std::int32_t>(folded.graph.collectives.size() - 1);
  ++folded.graph.collectives.back().count;
  return append_task(folded.graph, task, dependencies);
}

WorkId append_work(TaskGraph& graph, Work work) {
  graph.works.push_back(std::move(work));
  return WorkId(graph.works.size() - 1);
}

}  // namespace meshwright
