/// The training steps of a trace.
#pragma once

#include <cstddef>
#include <vector>

#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

struct TraceStep {
  Nanoseconds start, end;
  Nanoseconds duration() const { return end - start; }
  friend bool operator==(const TraceStep&, const TraceStep&) = default;
};

/// By start. All of the trace is one step if it does not say where steps start.
std::vector<TraceStep> steps_of(const TimelineTracks& tracks);

/// The step of median duration, as compare() chooses it: without the first of several, which is a
/// warm-up. `steps`: not empty.
std::size_t median_step(const std::vector<TraceStep>& steps);

/// The slices that start in `step`, with their arrows, and the memory during it. Linear time.
TimelineTracks tracks_of_step(const TimelineTracks& tracks, const TraceStep& step);

}  // namespace meshwright::gui
