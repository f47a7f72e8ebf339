#include "gui/timeline/morph.hpp"

#include <gtest/gtest.h>

#include "tests/gui/timeline/random_tracks.hpp"
#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

// F0 [0, 10) was measured at [5, 25), F1 [10, 20) at [25, 35), B0 [20, 40) at [35, 75); the clocks
// are 5 apart. So by the predicted clock F0 took [0, 20), F1 [20, 30), B0 [30, 70). Half of the
// way: F0 [0, 15), F1 [15, 25), B0 [25, 55). The optimizer [40, 44) was not measured: it keeps its
// duration and starts when B0 has ended.
TEST(Morph, InterpolatesLinearlyFromPredictedToMeasured) {
  const TimelineTracks predicted =
      row_of_pieces({{kF, 0, 0, 10}, {kF, 1, 10, 20}, {kB, 0, 20, 40}, {kO, 0, 40, 44}});
  const TimelineTracks measured =
      row_of_pieces({{kH, 0, 0, 5}, {kF, 0, 5, 25}, {kF, 1, 25, 35}, {kB, 0, 35, 75}});
  const TimelineComparison pairs =
      compare_tracks(predicted, measured, ComparisonAlignment::kFirstForward);
  ASSERT_EQ(pairs.offset, Nanoseconds(-5));
  const TimelineTracks half = morphed(predicted, measured, pairs, 0.5);
  EXPECT_EQ(half.start_ns, (std::vector<std::int64_t>{0, 15, 25, 55}));
  EXPECT_EQ(half.duration_ns, (std::vector<std::uint32_t>{15, 10, 30, 4}));
  EXPECT_EQ(half.end, Nanoseconds(59));
  const TimelineTracks full = morphed(predicted, measured, pairs, 1);
  EXPECT_EQ(full.start_ns, (std::vector<std::int64_t>{0, 20, 30, 70}));
  EXPECT_EQ(full.duration_ns, (std::vector<std::uint32_t>{20, 10, 40, 4}));
}

TEST(Morph, EqualsThePredictionAtTheStart) {
  const TimelineTracks predicted = row_of_pieces({{kF, 0, 3, 10}, {kB, 0, 20, 40}});
  const TimelineTracks measured = row_of_pieces({{kF, 0, 0, 90}, {kB, 0, 100, 140}});
  const auto pairs = compare_tracks(predicted, measured, ComparisonAlignment::kIterationStart);
  const TimelineTracks same = morphed(predicted, measured, pairs, 0);
  EXPECT_EQ(same.start_ns, predicted.start_ns);
  EXPECT_EQ(same.duration_ns, predicted.duration_ns);
  EXPECT_EQ(same.end, predicted.end);
}

// Measured in the opposite order: F1 [0, 10), F0 [10, 20). F0 moves toward 10 and F1 must not
// overtake it; the row stays valid at every slider position.
TEST(Morph, NeverOverlapsSlices) {
  const TimelineTracks predicted = row_of_pieces({{kF, 0, 0, 10}, {kF, 1, 10, 20}});
  const TimelineTracks measured = row_of_pieces({{kF, 1, 0, 10}, {kF, 0, 10, 20}});
  const auto pairs = compare_tracks(predicted, measured, ComparisonAlignment::kIterationStart);
  const TimelineTracks full = morphed(predicted, measured, pairs, 1);
  EXPECT_EQ(full.start_ns, (std::vector<std::int64_t>{10, 20}));
  const TimelineTracks a = random_tracks(7, {.rows = 4, .slices_per_row = 300});
  const TimelineTracks b = random_tracks(8, {.rows = 4, .slices_per_row = 300});
  const auto random_pairs = compare_tracks(a, b, ComparisonAlignment::kIterationStart);
  ASSERT_GT(random_pairs.slices.size(), 10U);
  for (int step = 0; step <= 10; ++step) {
    const TimelineTracks between = morphed(a, b, random_pairs, step / 10.0);
    EXPECT_TRUE(check_timeline_tracks(between).empty())
        << step << ": " << check_timeline_tracks(between).front();
  }
}

}  // namespace
}  // namespace meshwright::gui
