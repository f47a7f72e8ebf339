/// How the kernels of a graph can be sharded over tensor-parallel devices.
#pragma once

#include <vector>

#include "models/onnx/fuse_kernels.hpp"

namespace meshwright::onnx {

/// Larger graphs have no tensor parallelism.
inline constexpr std::size_t kMostShardedNodes = 16'384;

/// Groups the nodes into units, which have one kernel each, or none. A unit can be sharded along
/// the dimensions that are linked (DimensionLinks) in all of its nodes: then no node needs a part
/// that another device has. Left out are dimensions along which every device would need a whole
/// matrix of parameters, as in data parallelism. Fused attention is sharded by sequences or heads
/// only.
std::vector<KernelUnit> kernel_units(const KernelNodes& graph, Dtype dtype);

}  // namespace meshwright::onnx
