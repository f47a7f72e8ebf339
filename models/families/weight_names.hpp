/// Names and layouts of a model's parameters in HuggingFace checkpoints.
#pragma once

#include <optional>

#include "core/formats/weight_layout.hpp"
#include "core/model/model_graph.hpp"

namespace meshwright {

/// Empty for families whose checkpoints are not known (bert, grok-1, mlp).
std::optional<WeightLayout> weight_layout(const ModelGraph& model);

}  // namespace meshwright
