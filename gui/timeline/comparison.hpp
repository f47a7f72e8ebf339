/// Matches rows and slices of a predicted and a measured timeline and measures their distance.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

enum class ComparisonAlignment : std::uint8_t { kIterationStart, kFirstForward, kFreeOffset };

/// Rows of the same rank and stream.
struct RowPair {
  std::int32_t predicted = -1, measured = -1;  ///< -1: missing in this timeline
  friend bool operator==(const RowPair&, const RowPair&) = default;
};
struct SlicePair {
  std::uint32_t predicted = 0, measured = 0;
  friend auto operator<=>(const SlicePair&, const SlicePair&) = default;
};

struct TimelineComparison {
  std::vector<RowPair> rows;
  std::vector<SlicePair> slices;  ///< by measured slice
  /// Added to measured times to align them with the predicted ones.
  Nanoseconds offset;
  /// Mean |start difference| of the pairs after alignment.
  Nanoseconds residual;
  std::size_t predicted_alone = 0, measured_alone = 0;
};

/// Matches slices of paired rows by (kind, stage, micro-batch, occurrence). Linear time.
TimelineComparison compare_tracks(const TimelineTracks& predicted, const TimelineTracks& measured,
                                  ComparisonAlignment alignment, Nanoseconds free_offset = {});

}  // namespace meshwright::gui
