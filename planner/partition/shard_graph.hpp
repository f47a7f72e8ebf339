/// Tensor parallelism for graphs of kernels: how each unit of nodes is sharded over the devices of
/// a group, chosen with what it costs to change the layouts of tensors between them
/// (tensor_layout.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/model/kernel_graph.hpp"
#include "planner/partition/tensor_layout.hpp"

namespace meshwright {

struct ShardingRequest {
  TensorGroup group;
  int microbatches = 1;            ///< per step
  bool shards_parameters = false;  ///< all matrices that can be, to save memory
};

inline constexpr std::int32_t kReplicated = -1;

struct ShardedGraph {
  /// What one device computes, sends and holds.
  KernelGraph graph;
  /// By unit: index in KernelUnit::shardings; kReplicated: every device does all of it.
  std::vector<std::int32_t> sharding;
  bool is_optimal = false;  ///< no choice takes less time by the sum of kernels and collectives
};

/// The choice with the least time of kernels and collectives per micro-batch. A tensor with several
/// readers in another layout is changed once, but counts for each in the choice. Parts are equal,
/// or differ by at most 5 %. Requires KernelGraph::units, and that `graph` is not sharded yet.
ShardedGraph shard_graph(const KernelGraph& graph, const CostModel& cost,
                         const ShardingRequest& request);

/// ShardedGraph::graph of a given choice.
KernelGraph apply_sharding(const KernelGraph& graph, const CostModel& cost,
                           const ShardingRequest& request,
                           const std::vector<std::int32_t>& sharding);

/// Of the output of each node in DTensor's words, as its unit leaves it: "Shard(1)", "Partial" or
/// "Replicate". By node; empty: only nodes of its unit read it, or none.
std::vector<std::string> placements_of(const KernelGraph& graph,
                                       const std::vector<std::int32_t>& sharding);

}  // namespace meshwright
