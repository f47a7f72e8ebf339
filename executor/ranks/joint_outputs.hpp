/// Outputs of linear layers that lie side by side in one matrix, so that one product computes them
/// all, and one each their gradients: queries, keys and values, or gate and up projections.
#pragma once

#include <vector>

#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// The linear layer of each tensor that is one of its joint outputs; -1 for all other tensors.
/// Readers must accept rows with gaps: exchanges between context ranks do not.
std::vector<OperatorId> joint_producers(const ModelGraph& model, const Strategy& strategy);

}  // namespace meshwright
