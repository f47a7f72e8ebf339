/// Partitions of a graph of kernels over the devices of a cluster: prices the kernels, and poses
/// the problems of throughput_partition.hpp (inference) and replication_partition.hpp (training).
#pragma once

#include <optional>
#include <string>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/kernel_graph.hpp"
#include "core/plan/plan.hpp"
#include "planner/partition/replication_partition.hpp"
#include "planner/partition/throughput_partition.hpp"

namespace meshwright {

struct GraphDevices {
  int count = 1;
  Bytes memory = {};               ///< of each
  Bytes reserved = {};             ///< part of `memory`: CUDA context, communicators
  bool crosses_nodes = false;      ///< stages may be on different nodes
  int flows_per_node = 1;          ///< messages that leave a node at the same time
  int microbatches = 1;            ///< per batch; training
  std::optional<int> tensor = {};  ///< tensor-parallel degree of plan_graph(); absent: all
  int shards = 1;  ///< devices that share weights, gradients and optimizer state of one; training
};

/// The first `count` devices of a cluster, with the memory of the smallest ones.
GraphDevices graph_devices(const Cluster& cluster, int count);

/// Nodes are merged until there are at most this many: then the number of down-sets is small.
inline constexpr std::size_t kMostTrainingGroups = 320;
inline constexpr std::size_t kMostInferenceGroups = 1024;
/// For partition_with_replication(): graphs with more are partitioned in one topological order.
inline constexpr std::size_t kMostTrainingDownSets = 8'000;

/// A problem, and which of its nodes each node of the graph is part of. Exact: the best partition
/// of the graph is one of these groups.
template <class Problem>
struct PricedKernelGraph {
  Problem problem;
  std::vector<std::int32_t> group;
  bool is_exact = true;
};

/// The time of one micro-batch of inference: forward kernels, and transfers of the outputs between
/// stages. Memory: parameters, including tied ones, and outputs that leave their kernel. All nodes
/// are in the problem; fused and merged ones share a `colocation`. Throws InputError at `where` for
/// more than 10^6 seconds per micro-batch.
PartitionProblem price_inference(const KernelGraph& graph, const CostModel& cost,
                                 const GraphDevices& devices, const std::string& where);

/// Training: forward and backward kernels; saved tensors of the micro-batches in flight; weights,
/// gradients and AdamW's state, divided by GraphDevices::shards. Fused nodes are in one group.
/// Variants: a node that saves more than its inputs can be recomputed from them. An output with
/// several readers is passed on from one to the next, in the order of the nodes, so that a stage of
/// consecutive readers receives it once; a view of it is not sent as well. Weight updates are not
/// priced. Tied weights count at each node that reads them.
PricedKernelGraph<ReplicationProblem> price_training(const KernelGraph& graph,
                                                     const CostModel& cost,
                                                     const GraphDevices& devices,
                                                     const std::string& where);

/// No partition takes less time per micro-batch: all devices at work.
Seconds work_bound(const ReplicationProblem& problem);

/// A partition of `priced` with the nodes of the graph instead of the merged ones, and the problem
/// that it refers to: names, variants and edges of all nodes, for reports. If nodes were merged,
/// its lower bound is at most the work per device: partitions inside of groups were not searched.
struct TrainingPartition {
  ReplicationProblem problem;
  ReplicationPartition partition;
};
TrainingPartition expand(const KernelGraph& graph,
                         const PricedKernelGraph<ReplicationProblem>& priced,
                         const ReplicationPartition& partition);

/// The same for inference, where all nodes are in the problem.
ThroughputPartition expand(const KernelGraph& graph, const PartitionProblem& problem,
                           ThroughputPartition partition);

/// How graphs are trained: AdamW, fp32 gradients.
Strategy trained_in(Dtype dtype);

/// Sum of the times of kernels.
Seconds time_of(const std::vector<Kernel>& kernels, const CostModel& cost);
Seconds time_of(const std::vector<Collective>& collectives, const CostModel& cost);

}  // namespace meshwright
