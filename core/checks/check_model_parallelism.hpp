/// Rules of check_plan() for tensor, context and expert parallelism (beyond their degrees), the
/// rank order, and manual stage placement.
#pragma once

#include <vector>

#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Checks the expert degrees against the model and the ranks. Each diagnostic's `where` is a flag
/// without leading dashes. Degrees must be positive.
std::vector<Diagnostic> expert_degree_problems(const Plan& plan, const ModelGraph& model);

/// Each diagnostic's `where` is a flag without leading dashes. Degrees must be positive, and their
/// product at most the number of devices.
std::vector<Diagnostic> model_parallelism_problems(const Plan& plan, const ModelGraph& model,
                                                   const Cluster& cluster);
/// Checks Plan::device_of_stage, which must not be empty.
std::vector<Diagnostic> manual_placement_problems(const Plan& plan);
/// Checks a placement on a heterogeneous cluster.
std::vector<Diagnostic> mixed_nodes_problems(const Plan& plan, const Cluster& cluster,
                                             const Placement& placement);

}  // namespace meshwright
