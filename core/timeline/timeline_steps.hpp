/// Several consecutive training steps in one timeline.
#pragma once

#include <span>
#include <vector>

#include "core/timeline/timeline.hpp"

namespace meshwright {

/// Concatenates at least one step. All steps must have the same tracks, and each must start at time
/// zero; a step starts at the last end of the previous one. Provenance, origin and clock are those
/// of the first step; the starts are added to the provenance ("step starts", in picoseconds).
/// O(spans).
Timeline join_steps(std::span<const Timeline> steps);

/// The inverse of join_steps(): the k-th span with the same name on a track belongs to step k. If
/// the provenance has no step starts, a step starts with its first span. Drops flows. O(spans log
/// names).
std::vector<Timeline> steps_of(const Timeline& timeline);

/// The starts recorded by join_steps(), not decreasing; empty if there are none.
std::vector<Ticks> recorded_step_starts(const Timeline& timeline);

/// The last end of all spans: the duration of a step that starts at time zero.
Ticks step_time(const Timeline& step);

}  // namespace meshwright
