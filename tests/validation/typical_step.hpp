/// A measured step without what disturbed the machine in some of its tasks.
#pragma once

#include <span>

#include "core/cost_model.hpp"
#include "core/task_graph.hpp"
#include "core/timeline_of.hpp"

namespace meshwright {

/// A step whose computations take the median of what each took in `steps`, put together by the
/// graph; messages and collectives take their price. Where ranks meet, a step waits for the
/// slowest, and so adds up what disturbed one or the other; here disturbances do not add up, but
/// for those at collectives inside a task. At least one step.
Ticks typical_step(const TaskGraph& graph, std::span<const TaskTimes> steps,
                   const CostModel& costs);

}  // namespace meshwright
