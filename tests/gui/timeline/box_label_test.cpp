#include "gui/timeline/box_label.hpp"

#include <gtest/gtest.h>

#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

/// 6 pixels per letter, 4 in the small font.
int width_of(std::string_view text, bool is_small) {
  return static_cast<int>(text.size()) * (is_small ? 4 : 6);
}

TimelineTracks rows() {
  return row_of_pieces(
      {{kF, 7, 0, 100}, {kB, 12, 100, 300}, {kO, kNoMicrobatch, 300, 400}, {kF, 8, 400, 500}});
}

// "B12" is 18 pixels wide, "12" is 12, and 8 in the small font.
TEST(BoxLabel, KeepsTheMicrobatchNumberAsTheBoxNarrows) {
  const TimelineTracks tracks = rows();
  const auto label = [&](int room) { return box_label(tracks, 1, room, true, width_of); };
  EXPECT_EQ(label(18), (BoxLabel{"B12", false}));
  EXPECT_EQ(label(17), (BoxLabel{"12", false}));
  EXPECT_EQ(label(12), (BoxLabel{"12", false}));
  EXPECT_EQ(label(11), (BoxLabel{"12", true}));
  EXPECT_EQ(label(7), (BoxLabel{"12", true}));  // 2 + 7 pixels wide: one is left
  EXPECT_EQ(label(6), BoxLabel{});
}

TEST(BoxLabel, IsAWholeNameOrNothingForPartsOfAPlan) {
  const TimelineTracks tracks = rows();
  EXPECT_EQ(box_label(tracks, 2, 54, true, width_of), (BoxLabel{"optimizer", false}));
  EXPECT_EQ(box_label(tracks, 2, 53, true, width_of), BoxLabel{});
}

TEST(BoxLabel, ShortensKernelNamesOfTraces) {
  const TimelineTracks tracks = row_of_pieces({{SliceKind::kKernel, kNoMicrobatch, 0, 100}});
  EXPECT_EQ(box_label(tracks, 0, 36, true, width_of), (BoxLabel{"kernel", false}));
  EXPECT_EQ(box_label(tracks, 0, 35, true, width_of), BoxLabel{});  // "kern.." is as wide
}

// "F7" and "F8" need 12 pixels, "B12" needs 18; 2 pixels are free at the sides.
TEST(BoxLabel, HasKindsOnlyIfTheyFitIntoAllWholeBoxesOfARow) {
  const TimelineTracks tracks = rows();
  const auto fit = [&](const std::vector<SliceBox>& boxes) {
    return kinds_fit(tracks, boxes, 100, width_of);
  };
  EXPECT_TRUE(fit({{0, 0, 14}, {1, 14, 34}, {2, 34, 40}}));
  EXPECT_FALSE(fit({{0, 0, 14}, {1, 14, 33}}));
  EXPECT_FALSE(fit({{0, 0, 13}, {1, 13, 40}}));
  EXPECT_TRUE(fit({{0, -1, 5}, {1, 5, 40}, {3, 95, 101}}));  // cut off by the window
}

}  // namespace
}  // namespace meshwright::gui
