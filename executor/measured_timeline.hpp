/// What was measured, as a timeline: one step, or all of them one after another.
#pragma once

#include <cstddef>
#include <optional>

#include "core/task_graph.hpp"
#include "core/timeline.hpp"
#include "executor/train.hpp"

namespace meshwright {

/// The step `only`, or all steps joined (core/timeline_steps.hpp); memory is each rank's counted
/// peak, one sample at time zero, since what works say of it is a prediction. The clock is the
/// caller's to set. At least one step.
Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run,
                           std::optional<std::size_t> only);

}  // namespace meshwright
