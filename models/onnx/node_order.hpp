/// The order in which nodes can be visited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/onnx/graph_tensor.hpp"

namespace meshwright::onnx {

/// The order of the file as far as possible: every node after the producers of its inputs (tensors
/// by node; -1: omitted). Nodes that depend on a cycle are missing.
std::vector<std::size_t> topological_order(const std::vector<std::vector<std::int32_t>>& inputs,
                                           const std::vector<GraphTensor>& tensors);

/// The smallest index below `count` that is not in `indices`.
std::size_t first_missing(const std::vector<std::size_t>& indices, std::size_t count);

}  // namespace meshwright::onnx
