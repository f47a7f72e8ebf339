/// Which layers of the model a stage holds.
#pragma once

#include <vector>

#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"

namespace meshwright {

/// By stage of the placement, first layer to last: embedding with the first part of the model, head
/// with the last one, blocks as Plan::blocks_per_stage cuts them.
std::vector<std::vector<LayerId>> layers_of_stages(const Plan& plan, const ModelGraph& model);

}  // namespace meshwright
