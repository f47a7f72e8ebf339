/// The rules of a plan's data axis, for check_plan().
#pragma once

#include <vector>

#include "core/cluster.hpp"
#include "core/error.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"

namespace meshwright {

/// Each with the flag (without dashes) as its place. Degrees must be positive.
std::vector<Diagnostic> data_parallelism_problems(const Strategy& strategy, const ModelGraph& model,
                                                  const Cluster& cluster);

/// Those that depend on where the stages are.
std::vector<Diagnostic> data_parallelism_problems(const Strategy& strategy,
                                                  const Placement& placement);

}  // namespace meshwright
