/// How slices move when the same work is ordered anew: where each was on the screen and where it is
/// now. Pure; the view paints a few in-between pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline_layout.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// One pass: ranks and pixels before and after. Passes that come into being have no width before,
/// those that end have none afterwards, both in their middle.
struct GlidingSlice {
  std::int32_t rank_before = -1, rank_after = -1;
  SliceKind kind = SliceKind::kForward;
  float left_before = 0, right_before = 0, left_after = 0, right_after = 0;
  friend bool operator==(const GlidingSlice&, const GlidingSlice&) = default;
};

/// More passes than this are not followed by the eye, and cost more than a picture may.
inline constexpr std::size_t kMostGliding = 6'000;

/// Passes of replica 0, paired by stage, kind and micro-batch, of several the n-th with the n-th.
/// Empty if either timeline has more than kMostGliding. O(n log n).
std::vector<GlidingSlice> gliding_slices(const TimelineTracks& before,
                                         const TimeWindow& window_before,
                                         const TimelineTracks& after,
                                         const TimeWindow& window_after);

/// 0 to 1 → 0 to 1, fast at first and slow at the end.
double eased(double share);

}  // namespace meshwright::gui
