/// Coverage mipmap: the busy fraction of a row per kind at every zoom level, used to draw millions
/// of slices. The color of a pixel is the exact blend of what ran in it, so bubbles keep their
/// darkness at every zoom.
///
/// Level l divides the timeline into bins of base_bin << l nanoseconds; a bin holds the busy
/// fraction of every kind in the row, in units of 1/65535. The rounding error is carried from bin
/// to bin, so that the sum over a row is off by at most half a unit of one bin. About 1.5 bytes per
/// slice, plus exact prefix sums of durations by kind every kSlicesPerSum slices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gui/timeline/kinds.hpp"

namespace meshwright::gui {

struct TimelineTracks;

inline constexpr std::size_t kSlicesPerSum = 64;
/// Busy time by kind.
using BusyTimes = std::array<Nanoseconds, kSliceKindCount>;
Nanoseconds total(const BusyTimes& times);

struct CoverageLevel {
  std::size_t bins = 0;
  std::vector<std::uint16_t> shares;  ///< [bin, channel of the row]
};

struct RowCoverage {
  std::vector<SliceKind> channels;    ///< kinds in the row, ascending
  Nanoseconds base_bin;               ///< width of a bin of level 0; a power of two
  std::vector<CoverageLevel> levels;  ///< down to a single bin
  /// [slice / kSlicesPerSum, channel]: total time of all earlier slices of the row.
  std::vector<std::int64_t> sums_ns;
};

struct TimelineCoverage {
  std::vector<RowCoverage> rows;
};

/// Linear in the number of slices. Rows are independent;
/// row_coverage() allows building them in parallel.
TimelineCoverage build_coverage(const TimelineTracks& tracks);
RowCoverage row_coverage(const TimelineTracks& tracks, std::size_t row);

/// Exact busy time by kind of a row within [from, to). O(log slices + kSlicesPerSum).
BusyTimes busy_times(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                     Nanoseconds to);

}  // namespace meshwright::gui
