/// Where a step begins and ends in simulated times.
#pragma once

#include <optional>
#include <vector>

#include "core/task_graph.hpp"
#include "core/timeline_of.hpp"

namespace meshwright {

/// One step of a graph of several, whose pipeline is never flushed (core/weight_versions.hpp).
struct StepInWindow {
  int first_microbatch = 0;  ///< above 0: some step is in front of it
  int microbatches = 1;
  friend bool operator==(const StepInWindow&, const StepInWindow&) = default;
};

struct StepBounds {
  std::vector<Ticks> from, to;  ///< by rank
  Ticks time;                   ///< the longest of them
  friend bool operator==(const StepBounds&, const StepBounds&) = default;
};

/// A graph of one step: from the first start to the last end, the same on all ranks. A step in a
/// window: on every rank from the end of the update in front of it to that of its own last one. It
/// has forward passes of later micro-batches in it then, as many as it has backward passes: in the
/// steady state this is the period of the pipeline, the same on all ranks. O(tasks).
StepBounds step_bounds(const TaskGraph& graph, const TaskTimes& times,
                       const std::optional<StepInWindow>& step);

}  // namespace meshwright
