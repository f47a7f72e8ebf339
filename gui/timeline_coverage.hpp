/// How busy a row is, and with what, at every zoom: the pyramid that millions of slices are drawn
/// from. A pixel is coloured by the exact blend of what ran in it, so bubbles keep their darkness
/// however far the view is zoomed out.
///
/// Level l divides the timeline into bins of base_bin << l nanoseconds; a bin holds the busy share
/// of every kind that the row has, in 1/65535. Rounding is carried from bin to bin of a row, so
/// that the sum over a row is off by half a unit of one bin at most. About 1.5 bytes a slice.
/// Beside it, exact sums of durations by kind, every kSlicesPerSum slices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gui/timeline_kinds.hpp"

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
  std::vector<SliceKind> channels;    ///< kinds that the row has, ascending
  Nanoseconds base_bin;               ///< width of a bin of level 0; a power of two
  std::vector<CoverageLevel> levels;  ///< until one bin is left
  /// [slice / kSlicesPerSum, channel]: time of all slices of the row before that one.
  std::vector<std::int64_t> sums_ns;
};

struct TimelineCoverage {
  std::vector<RowCoverage> rows;
};

/// Linear in slices. Rows are independent; the caller may build them in parallel with row_coverage.
TimelineCoverage build_coverage(const TimelineTracks& tracks);
RowCoverage row_coverage(const TimelineTracks& tracks, std::size_t row);

/// Exact time by kind of the parts of a row's slices in [from, to). O(log slices + kSlicesPerSum).
BusyTimes busy_times(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                     Nanoseconds to);

}  // namespace meshwright::gui
