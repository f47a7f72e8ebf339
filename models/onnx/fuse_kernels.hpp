/// Fusion of kernels, as torch.compile does it: biases into the products before them, elements and
/// rows that are passed from kernel to kernel into one kernel that keeps them on chip, and
/// attention that is written out into fused attention.
///
/// A fused kernel does the work of several nodes: all that read an output of one of them, but the
/// last, are among them. So they cannot depend on each other through other nodes. It belongs to the
/// last one; the others have no kernels and save nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "models/onnx/node_context.hpp"

namespace meshwright::onnx {

/// A node of the result, while it is made.
struct KernelNode {
  KernelGraphNode work;
  const OperatorRule* rule = nullptr;
  std::vector<std::int32_t> inputs, outputs;  ///< tensors; -1: omitted
  std::vector<std::int32_t> saved;            ///< tensors that the backward pass reads
  DimensionLinks links = {};
  std::int32_t joined_with = -1;  ///< the first of several products that have become one
};

/// The nodes of the result, in topological order, and all tensors of the file.
struct KernelNodes {
  std::vector<KernelNode> nodes;
  std::vector<GraphTensor> tensors;
  std::vector<std::int32_t> producer;  ///< by tensor: index of a node above; -1: none
  std::vector<bool> is_graph_output;   ///< by tensor
};

/// By tensor: the one whose memory it shares; itself if none.
std::vector<std::int32_t> roots_of(const std::vector<GraphTensor>& tensors);

void fuse_kernels(KernelNodes& graph, const GraphSettings& settings);

}  // namespace meshwright::onnx
