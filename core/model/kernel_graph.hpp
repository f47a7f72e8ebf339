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
  friend bool operator==(const KernelGraphNode&, const KernelGraphNode&) = default;
};

/// `target` reads `bytes` of `source`. Edges that carry the same tensor have the same `tensor`.
struct KernelGraphEdge {
  std::int32_t source = 0, target = 0, tensor = 0;
  Bytes bytes;
  friend bool operator==(const KernelGraphEdge&, const KernelGraphEdge&) = default;
};

/// Nodes are in topological order.
struct KernelGraph {
  std::vector<KernelGraphNode> nodes;
  std::vector<KernelGraphEdge> edges;
  Dtype dtype = Dtype::kBf16;
  friend bool operator==(const KernelGraph&, const KernelGraph&) = default;
};

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
