/// The measured timeline of a run: one step, or all of them in sequence.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline.hpp"
#include "executor/runs/train.hpp"

namespace meshwright {

/// The step `only`, or all steps that have times concatenated (core/timeline/timeline_steps.hpp).
/// Memory is each rank's counted peak, as one sample at time zero, since the memory curve of the
/// task graph is a prediction. The caller sets the clock. Needs at least one step.
Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run,
                           std::optional<std::size_t> only);

/// Frees the times of tasks of all but some steps of a long run: those whose durations are next to
/// the median keep theirs.
class MedianTimes {
 public:
  /// To be called after every step, with all steps so far.
  void thin(std::vector<MeasuredStep>& steps);

 private:
  std::vector<std::size_t> with_times_;  ///< indices of steps
};

}  // namespace meshwright
