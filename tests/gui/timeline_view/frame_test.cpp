// Hit testing and places on the screen, without a widget.
#include "gui/timeline_view/frame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/timeline_view/state.hpp"
#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

using ::testing::ElementsAre;

constexpr int kLeft = TimelineGeometry::kGutter;
constexpr int kTop = TimelineGeometry::kOverview + TimelineGeometry::kRuler;

/// F0 0..100, idle, B0 300..500 on one row; one nanosecond per pixel.
class TimelineFrames : public testing::Test {
 protected:
  TimelineFrames() {
    state.content.tracks =
        std::make_shared<const TimelineTracks>(row_of_pieces({{kF, 0, 0, 100}, {kB, 0, 300, 500}}));
    state.geometry = timeline_geometry({kLeft + 1000, kTop + 100}, 0);
    state.lanes.arrange(state.geometry.body.height());
    state.viewport.set_width(state.geometry.body.width());
    state.viewport.show_range(Nanoseconds(0), Nanoseconds(1000));
    const Lane& lane = state.lanes.arrangement()->lanes.front();
    y = state.frame().top_of(lane) + lane.height / 2;
  }
  TimelineState state;
  int y = 0;  ///< the middle of the row
};

TEST_F(TimelineFrames, ReserveTheWidthOfTheScrollBar) {
  EXPECT_EQ(timeline_geometry({kLeft + 1000, kTop + 100}, 15).body, QRect(kLeft, kTop, 985, 100));
  EXPECT_EQ(state.geometry.body, QRect(kLeft, kTop, 1000, 100));
  // A widget that is too small still has a body.
  EXPECT_EQ(timeline_geometry({10, 10}, 15).body.size(), QSize(1, 1));
}

TEST_F(TimelineFrames, FindSlicesBubblesAndLanes) {
  const TimelineFrame frame = state.frame();
  EXPECT_EQ(target_at(frame, {kLeft + 50, y}).slice, 0U);
  EXPECT_EQ(target_at(frame, {kLeft + 400, y}).slice, 1U);
  const TimelineTarget idle = target_at(frame, {kLeft + 200, y});
  EXPECT_FALSE(idle.slice);
  EXPECT_EQ(idle.bubble, (Bubble{0, 1, Nanoseconds(100), Nanoseconds(300)}));
  const TimelineTarget name = target_at(frame, {kLeft - 50, y});
  EXPECT_EQ(name.lane, 0U);
  EXPECT_FALSE(name.slice || name.bubble);
  EXPECT_EQ(target_at(frame, {kLeft + 50, kTop - 5}), TimelineTarget());
}

TEST_F(TimelineFrames, HaveAHandleAtTheRightEdgeOfTheGutter) {
  EXPECT_EQ(pipeline_rank_handle_at(state.frame(), {kLeft - 5, y}), 0);
  EXPECT_EQ(pipeline_rank_handle_at(state.frame(), {kLeft - 20, y}), std::nullopt);
  EXPECT_EQ(pipeline_rank_handle_at(state.frame(), {kLeft + 5, y}), std::nullopt);
}

TEST_F(TimelineFrames, PlaceSlicesWhereTheyAreFound) {
  const QRectF box = box_of_slice(state.frame(), false, 1);
  EXPECT_EQ(box.left(), kLeft + 300);
  EXPECT_EQ(box.width(), 200);
  EXPECT_TRUE(box.contains(kLeft + 400, y));
  EXPECT_EQ(box_of(state.frame(), Bubble{0, 1, Nanoseconds(100), Nanoseconds(300)}).right(),
            box.left());
  EXPECT_TRUE(box_of(state.frame(), false, 7, Nanoseconds(0), Nanoseconds(1)).isNull());
}

// The end pixel counts; times beyond the timeline do not.
TEST_F(TimelineFrames, SpanAreasBetweenCorners) {
  const TimelineArea area = area_between(state.frame(), {kLeft + 100, y - 2}, {kLeft + 299, y});
  EXPECT_THAT(area.rows, ElementsAre(0U));
  EXPECT_EQ(area.from, Nanoseconds(100));
  EXPECT_EQ(area.to, Nanoseconds(300));
  EXPECT_EQ(area_between(state.frame(), {kLeft + 400, y}, {kLeft + 900, y}).to, Nanoseconds(500));
}

}  // namespace
}  // namespace meshwright::gui
