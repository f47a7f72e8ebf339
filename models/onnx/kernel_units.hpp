/// How the kernels of a graph can be sharded over tensor-parallel devices.
#pragma once

#include <vector>

#include "models/onnx/fuse_kernels.hpp"

namespace meshwright::onnx {

/// Larger graphs have no tensor parallelism.
inline constexpr std::size_t kMostShardedNodes = 16'384;

/// All nodes in units of those that have one kernel, or none, with the dimensions that can be
/// divided. A unit is divided along dimensions that are linked (DimensionLinks) in all of its
/// nodes, so that no node needs another device's part. Not offered: dimensions along which a
/// device would need a whole matrix of parameters, which is data parallelism, and for fused
/// attention others than sequences and heads.
std::vector<KernelUnit> kernel_units(const KernelNodes& graph, Dtype dtype);

}  // namespace meshwright::onnx
