/// The measured timeline of a run: one step, or all of them in sequence.
#pragma once

#include <cstddef>
#include <optional>

#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline.hpp"
#include "executor/runs/train.hpp"

namespace meshwright {

/// The step `only`, or all steps concatenated (core/timeline/timeline_steps.hpp). Memory is each
/// rank's counted peak, as one sample at time zero, since the memory curve of the task graph is a
/// prediction. The caller sets the clock. Needs at least one step.
Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run,
                           std::optional<std::size_t> only);

}  // namespace meshwright
