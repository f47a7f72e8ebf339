/// The part of check_plan() that judges tensor, context and expert parallelism beyond their
/// degrees, the rank order, and layers placed by hand.
#pragma once

#include <vector>

#include "core/plan.hpp"
#include "core/schedule.hpp"

namespace meshwright {

/// Degrees of the experts against model and ranks. Fields are named as flags, without dashes in
/// front; degrees must be positive.
std::vector<Diagnostic> expert_degree_problems(const Plan& plan, const ModelGraph& model);

/// Fields are named as flags, without dashes in front. Degrees must be positive and multiply to no
/// more ranks than there are devices.
std::vector<Diagnostic> model_parallelism_problems(const Plan& plan, const ModelGraph& model,
                                                   const Cluster& cluster);
/// Of Plan::device_of_stage, which must not be empty.
std::vector<Diagnostic> hand_placement_problems(const Plan& plan);
/// Nodes of several kinds under a placement.
std::vector<Diagnostic> mixed_nodes_problems(const Plan& plan, const Cluster& cluster,
                                             const Placement& placement);

}  // namespace meshwright
