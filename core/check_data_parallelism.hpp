/// Data-parallel rules of check_plan().
#pragma once

#include <vector>

#include "core/cluster.hpp"
#include "core/error.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"

namespace meshwright {

/// Each diagnostic's `where` is a flag without leading dashes. Degrees must be positive.
std::vector<Diagnostic> data_parallelism_problems(const Strategy& strategy, const ModelGraph& model,
                                                  const Cluster& cluster);

/// The rules that depend on the placement of the stages.
std::vector<Diagnostic> data_parallelism_problems(const Strategy& strategy,
                                                  const Placement& placement);

}  // namespace meshwright
