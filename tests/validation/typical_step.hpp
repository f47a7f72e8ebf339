/// A measured step with disturbances by other programs filtered out.
#pragma once

#include <span>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline_of.hpp"

namespace meshwright {

/// Simulates a step in which each computation takes its median time over `steps`, and messages and
/// collectives take the time of the cost model. A real step waits for the slowest rank at every
/// synchronization and so accumulates the disturbances of all ranks; here they do not accumulate,
/// except at collectives inside a task. Needs at least one step.
Ticks typical_step(const TaskGraph& graph, std::span<const TaskTimes> steps,
                   const CostModel& costs);

}  // namespace meshwright
