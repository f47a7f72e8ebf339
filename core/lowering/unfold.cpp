// Expands one representative per pipeline rank to all ranks. Every task of the folded graph becomes
// one task per replica, adjacent to each other; the copies of a collective are sorted by group.
#include "core/lowering/unfold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace meshwright {
namespace {

class Unfolding {
 public:
  Unfolding(const FoldedGraph& folded, std::int64_t replicas)
      : folded_(folded.graph), order_(folded, replicas), replicas_(replicas) {}

  TaskGraph run() {
    TaskGraph graph;
    const auto copies = static_cast<std::size_t>(replicas_);
    graph.parts = folded_.parts;
    graph.works = folded_.works;
    graph.programs = folded_.programs;
    graph.tasks.reserve(folded_.tasks.size() * copies);
    graph.dependency_begin.reserve(folded_.tasks.size() * copies + 1);
    graph.dependencies.reserve(folded_.dependencies.size() * copies);
    graph.dependency_begin.push_back(0);
    for (std::size_t t = 0; t < folded_.tasks.size();) {
      const Task& task = folded_.tasks[t];
      if (task.kind == TaskKind::kCollective) {
        t = copy_collective(task.partner, graph);
      } else {
        for (std::int64_t r = 0; r < replicas_; ++r) copy(t, r, task.partner, graph);
        ++t;
      }
    }
    return graph;
  }

 private:
  void copy(std::size_t t, std::int64_t replica, std::int32_t partner, TaskGraph& graph) {
    Task task = folded_.tasks[t];
    task.rank = static_cast<std::int32_t>(task.rank * replicas_ + replica);
    task.partner = task.kind == TaskKind::kReceive
                       ? static_cast<std::int32_t>(partner * replicas_ + replica)
                       : partner;
    graph.tasks.push_back(task);
    for (const TaskId before : folded_.dependencies_of(TaskId(t)))
      graph.dependencies.emplace_back(static_cast<std::int32_t>(order_.index_of(before, replica)));
    graph.dependency_begin.push_back(static_cast<std::int32_t>(graph.dependencies.size()));
  }

  /// Returns the task after the folded collective.
  std::size_t copy_collective(std::int32_t c, TaskGraph& graph) {
    const CollectiveMembers& members = folded_.collectives[static_cast<std::size_t>(c)];
    const std::int64_t size = order_.spread_of(c).count;
    for (std::int64_t group = 0; group < order_.groups_of(c); ++group) {
      const auto made = static_cast<std::int32_t>(graph.collectives.size());
      graph.collectives.push_back({static_cast<std::int32_t>(graph.tasks.size()),
                                   static_cast<std::int32_t>(members.count * size)});
      for (std::int32_t m = 0; m < members.count; ++m)
        for (std::int64_t i = 0; i < size; ++i)
          copy(TaskId(members.first + m).index(), order_.replica_at(c, group, i), made, graph);
    }
    return TaskId(members.first + members.count).index();
  }

  const TaskGraph& folded_;
  CopyOrder order_;
  std::int64_t replicas_;
};

void check_size(const TaskGraph& folded, std::int64_t replicas) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max() / 2;
  const auto tasks = static_cast<std::int64_t>(folded.tasks.size());
  const auto edges = static_cast<std::int64_t>(folded.dependencies.size());
  if (std::max(tasks, edges) <= kMost / replicas) return;
  throw InputError(Diagnostic{
      "--all-ranks",
      fmt::format("{} pipelines of {} tasks exceed the limit of {} tasks per graph", replicas,
                  tasks, kMost),
      "remove --all-ranks: one representative per pipeline rank gives the same step time"});
}

}  // namespace

TaskGraph unfold(const FoldedGraph& folded, std::int64_t replicas) {
  MW_CHECK(folded.spreads.size() == folded.graph.collectives.size());
  check_size(folded.graph, replicas);
  return Unfolding(folded, replicas).run();
}

}  // namespace meshwright
