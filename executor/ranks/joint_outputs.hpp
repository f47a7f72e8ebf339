/// Outputs of linear layers that lie side by side in one matrix, so that one product computes them
/// all, and one each their gradients: queries, keys and values, or gate and up projections.
#pragma once

#include <span>
#include <vector>

#include "core/model/model_graph.hpp"
#include "executor/ranks/layer_sharding.hpp"

namespace meshwright {

/// Outputs [first, first + count) of a linear layer; no layer: the tensor has memory of its own.
struct JointOutputs {
  OperatorId layer{-1};
  std::size_t first = 0, count = 0;
};

/// By tensor. Joint are neighbors with the same reader, whose memory is needed and freed at the
/// same time: of queries, keys and values the first two, if they are rotated. The reader must
/// accept rows with gaps, which exchanges between context ranks do not.
std::vector<JointOutputs> joint_outputs_of(const ModelGraph& model,
                                           std::span<const LayerSharding> layers);

}  // namespace meshwright
