/// Predicted beside measured: which rows and slices belong together, and how far apart they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

enum class ComparisonAlignment : std::uint8_t { kIterationStart, kFirstForward, kFreeOffset };

/// Rows of the same rank and stream.
struct RowPair {
  std::int32_t predicted = -1, measured = -1;  ///< -1: only the other one has it
  friend bool operator==(const RowPair&, const RowPair&) = default;
};
struct SlicePair {
  std::uint32_t predicted = 0, measured = 0;
  friend auto operator<=>(const SlicePair&, const SlicePair&) = default;
};

struct TimelineComparison {
  std::vector<RowPair> rows;
  std::vector<SlicePair> slices;  ///< by measured slice
  /// Added to measured times to lay them over the predicted ones.
  Nanoseconds offset;
  /// Mean |start difference| of the pairs after the shift: how well the two align.
  Nanoseconds residual;
  std::size_t predicted_alone = 0, measured_alone = 0;
};

/// Pairs slices of a pair of rows by (kind, stage, micro-batch, how often so far). Linear.
TimelineComparison compare_tracks(const TimelineTracks& predicted, const TimelineTracks& measured,
                                  ComparisonAlignment alignment, Nanoseconds free_offset = {});

}  // namespace meshwright::gui
