/// The graph of one representative per pipeline rank, and how it is written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/task_graph.hpp"

namespace meshwright {

/// The replicas of a pipeline rank that join one collective: `count` of them, `stride` apart;
/// groups of this shape tile all replicas.
struct CollectiveSpread {
  std::int64_t stride = 1, count = 1;
  /// Ranks of the group per node, if the group starts with the first ranks of all nodes.
  std::int64_t alternates_over = 1;
};

/// A graph of one representative per pipeline rank, and how its collectives expand to all ranks.
struct FoldedGraph {
  TaskGraph graph;
  std::vector<CollectiveSpread> spreads;  ///< indexed by collective of `graph`
};

/// Appends a task and its dependencies.
TaskId append_task(TaskGraph& graph, const Task& task, std::span<const TaskId> dependencies);
WorkId append_work(TaskGraph& graph, Work work);

/// Begins a collective; its members are appended next.
void open_collective(FoldedGraph& folded, const CollectiveSpread& spread);
/// Appends a member of the open collective. `task` must have its work, kind, stream, stage and
/// micro-batch set.
TaskId append_member(FoldedGraph& folded, Task task, std::span<const TaskId> dependencies);

}  // namespace meshwright
