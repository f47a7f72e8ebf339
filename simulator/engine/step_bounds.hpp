/// Start and end of a training step in simulated times.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline_of.hpp"

namespace meshwright {

/// One step in a graph of several steps of a flushless schedule (core/plan/weight_versions.hpp).
struct StepInWindow {
  int first_microbatch = 0;  ///< above 0: at least one step precedes it
  int microbatches = 1;
  friend bool operator==(const StepInWindow&, const StepInWindow&) = default;
};

struct StepBounds {
  std::vector<Ticks> from, to;  ///< by rank
  Ticks time;                   ///< largest to - from
  friend bool operator==(const StepBounds&, const StepBounds&) = default;
};

/// For a graph of one step: from the first start to the last end, the same on all ranks. For a step
/// in a window: on every rank from the end of the preceding optimizer update to the end of the
/// step's own last update. This interval contains forward passes of later micro-batches, as many as
/// backward passes; in the steady state its length is the period of the pipeline, the same on all
/// ranks. O(tasks).
StepBounds step_bounds(const TaskGraph& graph, const TaskTimes& times,
                       const std::optional<StepInWindow>& step);

}  // namespace meshwright
