/// What was measured, as a timeline: all steps one after another.
#pragma once

#include "core/task_graph.hpp"
#include "core/timeline.hpp"
#include "executor/train.hpp"

namespace meshwright {

/// Steps joined (core/timeline_steps.hpp), the first one among them; memory is each rank's counted
/// peak, one sample at time zero. At least one step.
Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run, TimelineClock clock);

}  // namespace meshwright
