/// All ranks of a job as copies of one pipeline, without a task of its own for each: 131,072 ranks
/// of a 405B model have 103 million tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/lowering/folded_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/replica_shares.hpp"
#include "core/lowering/unfold.hpp"

namespace meshwright {

/// Task t of the folded graph stands for one task per replica. Parameter servers and one-process
/// data parallelism have one replica, which contains all ranks.
struct ReplicatedGraph {
  FoldedGraph folded;
  std::int64_t replicas = 1;
  std::vector<RankInfo> ranks;  ///< of the job: [rank of the folded graph, replica]
  ReplicaShares shares = {};
};

/// What lower() with RankSet::kAll makes copies of; throws as it does.
ReplicatedGraph lower_replicated(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                                 LoweringOptions options = {});

/// Replicas that do the same at the same time, class by class. The classes must be such that a
/// collective joins two replicas of one class to equal numbers of replicas of every class.
struct ReplicaClasses {
  std::vector<std::int32_t> class_of;         ///< by replica
  std::vector<std::int64_t> representatives;  ///< by class: its first replica
  std::vector<std::int64_t> sizes;            ///< by class
  friend bool operator==(const ReplicaClasses&, const ReplicaClasses&) = default;
};

/// The replicas with the same share of the batch.
ReplicaClasses classes_of_shares(const ReplicaShares& shares);

/// A graph of one replica per class. Its ranks are [rank of the folded graph, class] and represent
/// the whole class. A collective has one member per class that its group contains.
struct ClassGraph {
  TaskGraph graph;
  /// [task of the folded graph, class]: index in `graph`; -1: outside the share of the class.
  std::vector<std::int32_t> task_of;
  std::vector<std::int32_t> folded_collective;  ///< by collective: index in the folded graph
  std::vector<std::int32_t> first_class;        ///< by collective: its first class
};
ClassGraph graph_of_classes(const ReplicatedGraph& all, const ReplicaClasses& classes);
/// With a class for every replica.
ClassGraph graph_of_replicas(const ReplicatedGraph& all);
/// lower() with RankSet::kAll.
TaskGraph graph_of_all_ranks(const ReplicatedGraph& all);

}  // namespace meshwright
