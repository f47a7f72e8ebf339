/// Several training steps in one timeline, one after another.
#pragma once

#include <span>
#include <vector>

#include "core/timeline.hpp"

namespace meshwright {

/// Steps with equal tracks, each with time zero at its start, joined: each starts where the one
/// before it has its last end. Provenance, origin and clock are those of the first, and the starts
/// are noted ("step starts", in picoseconds). At least one. O(spans).
Timeline join_steps(std::span<const Timeline> steps);

/// The inverse: the k-th span of one name on a track belongs to step k. Where the provenance does
/// not say it, a step starts at its first span. Arrows are left out. O(spans log names).
std::vector<Timeline> steps_of(const Timeline& timeline);

/// Last end of all spans: what a step takes whose time zero is its start.
Ticks step_time(const Timeline& step);

}  // namespace meshwright
