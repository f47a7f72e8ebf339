#include "gui/timeline/glide.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/timeline/counters.hpp"
#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

// One pixel per nanosecond before, two after. F0 moves to rank 1 at 10..20, on the screen 20..40;
// B0 disappears in place; I0 appears at 0..10, on the screen 0..20.
TEST(GlidingSlices, AreMatchedByPassAcrossRanks) {
  const TimelineTracks before = rows_of_pieces({{{kF, 0, 0, 10}, {kB, 0, 10, 30}}, {}});
  const TimelineTracks after = rows_of_pieces({{{kI, 0, 0, 10}}, {{kF, 0, 10, 20}}});
  const std::vector<GlidingSlice> gliding =
      gliding_slices(before, {Nanoseconds(0), Nanoseconds(100), 100}, after,
                     {Nanoseconds(0), Nanoseconds(100), 200});
  EXPECT_THAT(gliding, testing::UnorderedElementsAre(GlidingSlice{0, 1, kF, 0, 10, 20, 40},
                                                     GlidingSlice{0, 0, kB, 10, 30, 20, 20},
                                                     GlidingSlice{0, 0, kI, 10, 10, 0, 20}));
}

TEST(GlidingSlices, AreEmptyAboveTheLimit) {
  std::vector<Piece> many;
  for (int i = 0; i <= static_cast<int>(kMostGliding); ++i) many.push_back({kF, i, i, i + 1});
  const TimelineTracks large = rows_of_pieces({many}), small = rows_of_pieces({{{kF, 0, 0, 1}}});
  const TimeWindow window{Nanoseconds(0), Nanoseconds(100), 100};
  EXPECT_TRUE(gliding_slices(small, window, large, window).empty());
  EXPECT_TRUE(gliding_slices(large, window, small, window).empty());
  EXPECT_EQ(gliding_slices(small, window, small, window).size(), 1U);
}

TEST(GlidingSlices, EaseFromTheirPlaceToTheOther) {
  EXPECT_EQ(eased(0), 0);
  EXPECT_EQ(eased(1), 1);
  EXPECT_EQ(eased(7), 1);
  EXPECT_EQ(eased(0.5), 0.875);  // 1 - (1/2)^3
  for (int tenth = 0; tenth < 10; ++tenth)
    EXPECT_LT(eased(tenth / 10.0), eased((tenth + 1) / 10.0));
}

TEST(InFlightCurves, MatchTheCurveOfEachRow) {
  const auto tracks = std::make_shared<const TimelineTracks>(
      rows_of_pieces({{{kF, 0, 0, 10}, {kF, 1, 10, 20}, {kB, 0, 20, 30}, {kB, 1, 30, 40}},
                      {{kF, 0, 10, 20}, {kB, 0, 20, 40}}}));
  InFlightCurves curves(tracks);
  EXPECT_EQ(curves.of_row(0).peak, 2);
  EXPECT_EQ(curves.of_row(1).peak, 1);
  EXPECT_THAT(curves.of_row(0).time_ns, testing::ElementsAre(0, 10, 30, 40));
  EXPECT_THAT(curves.of_row(0).value, testing::ElementsAre(1, 2, 1, 0));
  EXPECT_EQ(&curves.of_row(0), &curves.of_row(0));  // kept
}

}  // namespace
}  // namespace meshwright::gui
