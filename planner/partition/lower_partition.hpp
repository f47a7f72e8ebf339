/// Partitions of a graph of kernels as task graphs: their training step is simulated like that of a
/// plan.
#pragma once

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/model/kernel_graph.hpp"
#include "planner/partition/kernel_graph_partition.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

/// A partition for training, with what it was made from. Refers to its parts.
struct LoweredPartition {
  const KernelGraph& graph;
  const PricedKernelGraph<ReplicationProblem>& priced;
  const TrainingPartition& training;  ///< the result of expand()
  const Cluster& cluster;
  Bytes reserved = {};  ///< of every device
  /// What the replicas of a stage shard, as in ZeRO (arXiv 1910.02054): 0 nothing, 1 the state of
  /// the optimizer, 3 gradients and weights, too. 3 needs the same number of replicas in all
  /// stages, which divides the micro-batches.
  int zero = 0;
  /// Neighboring devices that do what one rank of the task graph does, each its part of `whole`
  /// (shard_graph.hpp); `graph` is that of one of them.
  int tensor = 1;
  const KernelGraph* whole = nullptr;  ///< null: `graph`
};
/// True if ZeRO 3 can be lowered, and any stage has replicas.
bool can_shard_weights(const TrainingPartition& training);

/// All ranks, of tensor-parallel devices one of each group: the replicas of the first stage, then
/// those of the next. Micro-batch b runs on replica b mod d of a stage with d replicas. A replica
/// runs ReplicatedStage::inflight forward passes, then backward and forward passes in turn (1F1B;
/// round robin over replicas as in PipeDream, arXiv 1806.03377), with a flush at the end of the
/// batch. A tensor that several stages read is passed on from one to the next, and its gradient
/// back. Then the gradients of a stage are reduced over its replicas and AdamW updates its weights.
/// Copies of tied weights in several stages are not reduced. ZeRO 3: the weights of about a layer
/// are gathered one such unit ahead, in the forward and in the backward pass, and every backward
/// pass reduces their gradients.
TaskGraph lower_partition(const LoweredPartition& partition);

/// The step of lower_partition(), simulated and evaluated. tokens_per_second_per_gpu is that of
/// micro-batches.
Prediction predict_partition(const LoweredPartition& partition, const CostModel& cost);

}  // namespace meshwright
