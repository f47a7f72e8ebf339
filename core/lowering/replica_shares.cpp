// A replica with fewer micro-batches than others runs the last ones of the schedule, in its order.
// Dependencies connect passes of the same micro-batch only, so what is left of the order is valid,
// and gradients are complete after the same micro-batch on all replicas.
#include "core/lowering/replica_shares.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/lowering/passes.hpp"
#include "core/plan/job_groups.hpp"

namespace meshwright {
namespace {

/// Replaces the node types of works.
class WorksOnKinds {
 public:
  explicit WorksOnKinds(TaskGraph& graph) : graph_(graph), peers_(graph.tasks.size(), -1) {
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      const Task& receive = graph.tasks[t];
      if (receive.kind != TaskKind::kReceive) continue;
      const auto send = static_cast<std::size_t>(receive.partner);
      peers_[t] = graph.tasks[send].rank;
      peers_[send] = receive.rank;
    }
  }

  /// By task. Collectives keep their works: their groups contain replicas of all shares.
  std::vector<WorkId> works_on(std::span<const std::int32_t> kind_of_rank) {
    std::vector<WorkId> works;
    works.reserve(graph_.tasks.size());
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const std::int32_t kind = kind_of_rank[static_cast<std::size_t>(task.rank)];
      const bool is_alone =
          peers_[t] < 0 || kind_of_rank[static_cast<std::size_t>(peers_[t])] == kind;
      works.push_back(task.kind == TaskKind::kCollective ? task.work
                                                         : on(task.work, is_alone ? kind : -1));
    }
    return works;
  }

 private:
  WorkId on(WorkId work, std::int32_t kind) {
    if (graph_.works[work.index()].node_kind == kind) return work;
    const auto [known, is_new] = known_.try_emplace({work.value, kind}, work);
    if (is_new) {
      Work copy = graph_.works[work.index()];
      copy.node_kind = kind;
      known->second = append_work(graph_, std::move(copy));
    }
    return known->second;
  }

  TaskGraph& graph_;
  std::vector<std::int32_t> peers_;  ///< by end of a message: the rank of the other end; else -1
  std::map<std::pair<std::int32_t, std::int32_t>, WorkId> known_;
};

}  // namespace

void share_batch(LoweringContext& context) {
  const Strategy& strategy = context.strategy;
  if (strategy.batch_shares.empty()) return;
  const std::vector<std::int32_t> kinds = kinds_of_data_ranks(strategy, context.cluster);
  const std::size_t positions = kinds.size() / static_cast<std::size_t>(strategy.degrees.data);
  WorksOnKinds works(context.graph());
  ReplicaShares& made = context.shares;
  std::map<std::pair<std::int64_t, std::vector<std::int32_t>>, std::int32_t> known;
  std::vector<std::int32_t> share_of_data_rank;
  for (int data = 0; data < strategy.degrees.data; ++data) {
    const std::int64_t first = share_start_of(strategy, data).microbatch;
    const auto of_rank =
        std::span(kinds).subspan(static_cast<std::size_t>(data) * positions, positions);
    const auto [found, is_new] =
        known.try_emplace({first, std::vector<std::int32_t>(of_rank.begin(), of_rank.end())},
                          static_cast<std::int32_t>(made.shares.size()));
    if (is_new)
      made.shares.push_back({static_cast<std::int32_t>(first),
                             of_rank.empty() ? std::vector<WorkId>() : works.works_on(of_rank)});
    share_of_data_rank.push_back(found->second);
  }
  for (std::int64_t replica = 0; replica < context.groups.stage_ranks; ++replica)
    made.share_of.push_back(share_of_data_rank[static_cast<std::size_t>(
        data_rank_of(strategy, context.groups, replica))]);
}

}  // namespace meshwright
