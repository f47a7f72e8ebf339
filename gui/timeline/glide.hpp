/// Animation of slices when the schedule changes: the position of every pass before and after.
/// Pure; the view paints the frames.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/layout.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// One pass: rank and pixels before and after. New passes grow from zero width at their center;
/// removed ones shrink to zero width.
struct GlidingSlice {
  std::int32_t rank_before = -1, rank_after = -1;
  SliceKind kind = SliceKind::kForward;
  float left_before = 0, right_before = 0, left_after = 0, right_after = 0;
  friend bool operator==(const GlidingSlice&, const GlidingSlice&) = default;
};

/// Above this number of passes the animation is not readable and too slow.
inline constexpr std::size_t kMostGliding = 6'000;

/// Passes of replica 0, matched by stage, kind, micro-batch and occurrence. Empty if either
/// timeline has more than kMostGliding passes. O(n log n).
std::vector<GlidingSlice> gliding_slices(const TimelineTracks& before,
                                         const TimeWindow& window_before,
                                         const TimelineTracks& after,
                                         const TimeWindow& window_after);

/// Ease-out curve from [0, 1] to [0, 1].
double eased(double share);

}  // namespace meshwright::gui
