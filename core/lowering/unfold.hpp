/// From representatives to all ranks of a job.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/check.hpp"
#include "core/lowering/folded_graph.hpp"

namespace meshwright {

/// Where the copies of tasks stand in the graph of all ranks: copy r of task t is task
/// t * replicas + slot, where slot = r except for members of collectives: all members of one group
/// must be adjacent (check_task_graph()). Refers to `folded`.
class CopyOrder {
 public:
  CopyOrder(const FoldedGraph& folded, std::int64_t replicas)
      : folded_(folded), replicas_(replicas) {}

  /// Index in the graph of all ranks.
  std::int64_t index_of(TaskId task, std::int64_t replica) const {
    const Task& copied = folded_.graph.tasks[task.index()];
    if (copied.kind != TaskKind::kCollective) return task.value * replicas_ + replica;
    const CollectiveSpread& spread = spread_of(copied.partner);
    const CollectiveMembers& members =
        folded_.graph.collectives[static_cast<std::size_t>(copied.partner)];
    const std::int64_t member = task.value - members.first;
    const std::int64_t row = group_of(copied.partner, replica) * members.count + member;
    const std::int64_t place = replica / spread.stride % spread.count;
    return members.first * replicas_ + row * spread.count + in_order(spread, place);
  }

  /// A collective splits the replicas into groups: their number, and the group of a replica.
  std::int64_t groups_of(std::int32_t collective) const {
    const CollectiveSpread& spread = spread_of(collective);
    MW_CHECK(replicas_ % (spread.stride * spread.count) == 0);
    return replicas_ / spread.count;
  }
  std::int64_t group_of(std::int32_t collective, std::int64_t replica) const {
    const CollectiveSpread& spread = spread_of(collective);
    return replica / (spread.stride * spread.count) * spread.stride + replica % spread.stride;
  }
  /// The replica at a position of a group.
  std::int64_t replica_at(std::int32_t collective, std::int64_t group,
                          std::int64_t position) const {
    const CollectiveSpread& spread = spread_of(collective);
    const std::int64_t first =
        group / spread.stride * spread.stride * spread.count + group % spread.stride;
    return first + place_at(spread, position) * spread.stride;
  }
  const CollectiveSpread& spread_of(std::int32_t collective) const {
    return folded_.spreads[static_cast<std::size_t>(collective)];
  }

 private:
  /// Index in the group: in rank order, or starting with the first ranks of all nodes.
  static std::int64_t in_order(const CollectiveSpread& spread, std::int64_t place) {
    const std::int64_t per_node = spread.alternates_over;
    if (per_node <= 1) return place;
    return place % per_node * (spread.count / per_node) + place / per_node;
  }
  static std::int64_t place_at(const CollectiveSpread& spread, std::int64_t position) {
    const std::int64_t per_node = spread.alternates_over;
    if (per_node <= 1) return position;
    const std::int64_t nodes = spread.count / per_node;
    return position % nodes * per_node + position / nodes;
  }

  const FoldedGraph& folded_;
  std::int64_t replicas_;
};

/// Expands the graph to all ranks; leaves TaskGraph::ranks empty. O(tasks).
TaskGraph unfold(const FoldedGraph& folded, std::int64_t replicas);

}  // namespace meshwright
