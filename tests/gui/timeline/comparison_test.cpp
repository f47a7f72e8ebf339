#include "gui/timeline/comparison.hpp"

#include <gtest/gtest.h>

#include "gui/timeline/order_edit.hpp"
#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

// Measured: a host task first, so that F0 starts at 5; aligned on F0, F1 is 2 late and B0 4 late.
TEST(Comparison, PairsByPassAndAlignsOnTheFirstForward) {
  const TimelineTracks predicted =
      row_of_pieces({{kF, 0, 0, 10}, {kF, 1, 10, 20}, {kB, 0, 20, 40}, {kB, 1, 40, 60}});
  const TimelineTracks measured =
      row_of_pieces({{kH, 0, 0, 5}, {kF, 0, 5, 17}, {kF, 1, 17, 29}, {kB, 0, 29, 49}});
  const TimelineComparison c =
      compare_tracks(predicted, measured, ComparisonAlignment::kFirstForward);
  EXPECT_EQ(c.rows, (std::vector<RowPair>{{0, 0}}));
  EXPECT_EQ(c.slices, (std::vector<SlicePair>{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(c.offset, Nanoseconds(-5));
  EXPECT_EQ(c.residual, Nanoseconds((0 + 2 + 4) / 3));
  EXPECT_EQ(c.predicted_alone, 1U);
  EXPECT_EQ(c.measured_alone, 1U);
  EXPECT_EQ(compare_tracks(predicted, measured, ComparisonAlignment::kIterationStart).offset,
            Nanoseconds(0));
  EXPECT_EQ(
      compare_tracks(predicted, measured, ComparisonAlignment::kFreeOffset, Nanoseconds(77)).offset,
      Nanoseconds(77));
}

TEST(OrderEdit, GoesAfterEveryPassWithAnEarlierMiddle) {
  const TimelineTracks tracks = row_of_pieces(
      {{kF, 0, 0, 10}, {kF, 1, 10, 20}, {kH, 0, 20, 22}, {kF, 2, 30, 40}, {kB, 0, 40, 60}});
  // F0 dropped at 36: after F1 and F2 (middle 35), before B0 (50).
  const auto edit = order_edit_at(tracks, 0, Nanoseconds(36));
  ASSERT_TRUE(edit);
  EXPECT_EQ(edit->from, 0);
  EXPECT_EQ(edit->to, 2);
  EXPECT_EQ(order_after(tracks, *edit), (std::vector<std::size_t>{1, 3, 0, 4}));
  // B0 to the front.
  const auto front = order_edit_at(tracks, 4, Nanoseconds(-100));
  ASSERT_TRUE(front);
  EXPECT_EQ(order_after(tracks, *front), (std::vector<std::size_t>{4, 0, 1, 3}));
  EXPECT_FALSE(order_edit_at(tracks, 0, Nanoseconds(12)));  // stays
  EXPECT_FALSE(order_edit_at(tracks, 2, Nanoseconds(0)));   // no pass
}

// WCAG 2.1, success criterion 1.4.3: 4.5 to 1 for text.
TEST(Colors, KeepTextReadable) {
  for (const TimelineColors& colors : {light_colors(), dark_colors(), high_contrast_colors()}) {
    EXPECT_GE(contrast(colors.text, colors.background), 7.0);
    EXPECT_GE(contrast(colors.text, colors.header), 7.0);
    EXPECT_GE(contrast(colors.faint_text, colors.background), 4.5);
    EXPECT_GE(contrast(colors.selection, colors.background), 4.5);
  }
  for (int p = 0; p < kSlicePaletteCount; ++p)
    for (const Argb fill : light_colors(static_cast<SlicePalette>(p)).slice)
      EXPECT_GE(contrast(fill, text_on(fill)), 4.5) << std::hex << fill;
}

// By hand: black on white is (1 + 0.05) / (0 + 0.05) = 21.
TEST(Colors, ContrastOfBlackAndWhiteIsTwentyOne) {
  EXPECT_NEAR(contrast(0xff000000, 0xffffffff), 21.0, 1e-9);
  EXPECT_NEAR(contrast(0xff808080, 0xff808080), 1.0, 1e-9);
}

}  // namespace
}  // namespace meshwright::gui
