#include "gui/timeline/content.hpp"

#include <gtest/gtest.h>

#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

/// Predicted: F0 F1 B0 B1. Measured: a host task of 5 ns, then F0 F1 B0.
TimelineContent compared() {
  TimelineContent content;
  content.tracks = std::make_shared<const TimelineTracks>(
      row_of_pieces({{kF, 0, 0, 10}, {kF, 1, 10, 20}, {kB, 0, 20, 40}, {kB, 1, 40, 60}}));
  content.measured = std::make_shared<const TimelineTracks>(
      row_of_pieces({{kH, 0, 0, 5}, {kF, 0, 5, 17}, {kF, 1, 17, 29}, {kB, 0, 29, 69}}));
  content.comparison = std::make_shared<const TimelineComparison>(compare_tracks(
      *content.tracks, *content.measured, ComparisonAlignment::kFreeOffset, Nanoseconds(7)));
  return content;
}

TEST(TimelineContent, FindsTheOtherSliceOfAPair) {
  const TimelineContent content = compared();
  EXPECT_EQ(content.measured_of(0), 1U);
  EXPECT_EQ(content.measured_of(2), 3U);
  EXPECT_EQ(content.measured_of(3), std::nullopt);   // B1 was not measured
  EXPECT_EQ(content.predicted_of(0), std::nullopt);  // the host task was not predicted
  EXPECT_EQ(content.predicted_of(1), 0U);
  EXPECT_EQ(content.predicted_of(3), 2U);
  TimelineContent alone = content;
  alone.comparison = nullptr;
  EXPECT_EQ(alone.measured_of(0), std::nullopt);
  EXPECT_EQ(alone.predicted_of(1), std::nullopt);
}

// The measured run ends at 69 and is shifted by 7; the prediction ends at 60.
TEST(TimelineContent, EndsWithTheLaterTimelineAfterAlignment) {
  TimelineContent content = compared();
  EXPECT_EQ(content.end(), Nanoseconds(76));
  EXPECT_EQ(content.offset_of({.is_measured = true}), Nanoseconds(7));
  EXPECT_EQ(content.offset_of({.is_measured = false}), Nanoseconds(0));
  content.measured = nullptr;
  EXPECT_EQ(content.end(), Nanoseconds(60));
}

}  // namespace
}  // namespace meshwright::gui
