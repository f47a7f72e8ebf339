/// A model as a graph of operators with the kernels that they launch for one micro-batch: what
/// cost models price and partitions are made from. Independent of devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"

namespace meshwright {

/// Trainable elements that a node reads after another one: tied weights.
struct TiedParameters {
  std::int32_t owner = 0;  ///< the first node that reads them
  std::int64_t count = 0;
  friend bool operator==(const TiedParameters&, const TiedParameters&) = default;
};

struct KernelGraphNode {
  std::string name;
  std::string operation;                  ///< "Conv"
  std::vector<Kernel> forward, backward;  ///< per micro-batch; backward: of training
  Bytes output;                           ///< everything that other nodes can read
  Bytes saved;                            ///< kept for the backward pass
  std::int64_t parameters = 0;            ///< trainable elements, of which it is the first reader
  std::vector<TiedParameters> tied = {};  ///< on another device than the owner it needs a copy
  /// A later node whose kernels do the work of this one, too: all nodes that read its output are
  /// part of them. -1: none.
  std::int32_t fused_into = -1;
  /// Tensor parallelism: collectives before its forward kernels, and before the kernels of the
  /// gradients of its weights.
  std::vector<Collective> forward_collectives = {}, backward_collectives = {};
  /// Parameters of which every tensor-parallel device has a copy, with gradients that are sums.
  std::int64_t summed_parameters = 0;
  friend bool operator==(const KernelGraphNode&, const KernelGraphNode&) = default;
};

/// `target` reads `bytes` of `source`. Edges that carry the same tensor have the same `tensor`.
struct KernelGraphEdge {
  std::int32_t source = 0, target = 0, tensor = 0;
  Bytes bytes;
  bool has_gradient = true;  ///< the backward pass sends one of as many bytes back
  friend bool operator==(const KernelGraphEdge&, const KernelGraphEdge&) = default;
};

/// A tensor of which every tensor-parallel device has a part of one dimension: Shard(dim) in
/// PyTorch's DTensor.
struct ShardedTensor {
  std::int32_t tensor = 0, dim = 0;
  /// The dimension was made of several, and one of them is divided, with steps of so many elements:
  /// heads in a product of heads and their width. 0: the whole dimension, in any order.
  std::int64_t stride = 0;
  friend auto operator<=>(const ShardedTensor&, const ShardedTensor&) = default;
};

/// The size of a product's forward kernel that is divided; those of backward kernels follow.
enum class ProductSide : std::uint8_t { kBatch, kRows, kColumns, kDepth };

/// One way to shard the kernels of a unit over tensor-parallel devices: each computes a part of
/// one dimension. What a unit reads whole has a gradient that is a sum over the devices.
struct KernelSharding {
  std::int64_t parts = 1;  ///< equal ones that the dimension has at most
  ProductSide side = ProductSide::kBatch;
  std::vector<ShardedTensor> tensors =
      {};                   ///< that it reads or writes, ascending; others are whole
  bool gives_sums = false;  ///< outputs are sums over the devices: Partial in DTensor
  double parameters = 0;    ///< share of the unit's parameters that is divided
  double traffic = 1;       ///< of memory-bound kernels: share that is divided
  Bytes statistics = {};    ///< such as the maxima of rows that a softmax sums up over the devices
  friend bool operator==(const KernelSharding&, const KernelSharding&) = default;
};

/// Nodes that are sharded together: fused ones, and products with their weights side by side.
struct KernelUnit {
  std::vector<std::int32_t> nodes;  ///< ascending
  std::vector<KernelSharding> shardings;
  Bytes results;  ///< outputs that no node reads
  friend bool operator==(const KernelUnit&, const KernelUnit&) = default;
};

/// Nodes are in topological order.
struct KernelGraph {
  std::vector<KernelGraphNode> nodes;
  std::vector<KernelGraphEdge> edges;
  Dtype dtype = Dtype::kBf16;
  std::vector<KernelUnit> units = {};  ///< of all nodes; empty: tensor parallelism is not known
  friend bool operator==(const KernelGraph&, const KernelGraph&) = default;
};

inline std::vector<Step> forward_steps(const KernelGraphNode& node) {
  std::vector<Step> steps(node.forward_collectives.begin(), node.forward_collectives.end());
  steps.insert(steps.end(), node.forward.begin(), node.forward.end());
  return steps;
}
inline std::vector<Step> backward_steps(const KernelGraphNode& node) {
  std::vector<Step> steps, last;
  for (const Kernel& kernel : node.backward)
    (kernel.phase == Phase::kBackwardWeight ? last : steps).emplace_back(kernel);
  steps.insert(steps.end(), node.backward_collectives.begin(), node.backward_collectives.end());
  steps.insert(steps.end(), last.begin(), last.end());
  return steps;
}

inline std::int64_t tied_parameters(const KernelGraphNode& node) {
  std::int64_t sum = 0;
  for (const TiedParameters& tied : node.tied) sum += tied.count;
  return sum;
}
inline Flops forward_flops(const KernelGraphNode& node) {
  Flops sum;
  for (const Kernel& kernel : node.forward) sum += kernel.flops;
  return sum;
}
inline Flops backward_flops(const KernelGraphNode& node) {
  Flops sum;
  for (const Kernel& kernel : node.backward) sum += kernel.flops;
  return sum;
}

}  // namespace meshwright
