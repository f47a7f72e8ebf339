/// From the graph of a file to kernels.
#pragma once

#include <string>
#include <vector>

#include "models/onnx/onnx.hpp"
#include "models/onnx/onnx_graph.hpp"

namespace meshwright::onnx {

struct KernelsAndTensors {
  KernelGraph kernels;
  std::vector<GraphTensor> tensors;
};
/// Infers all shapes and describes the work of all nodes.
KernelsAndTensors read_kernels(const Graph& graph, const std::string& where,
                               const OnnxOptions& options);

}  // namespace meshwright::onnx
