/// Data-parallel rules of check_plan().
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Each diagnostic's `where` is a flag without leading dashes. Degrees must be positive.
std::vector<Diagnostic> data_parallelism_problems(const Plan& plan, const ModelGraph& model,
                                                  const Cluster& cluster);

/// The rules that depend on the placement of the stages.
std::vector<Diagnostic> data_parallelism_problems(const Strategy& strategy,
                                                  const Placement& placement);

}  // namespace meshwright
