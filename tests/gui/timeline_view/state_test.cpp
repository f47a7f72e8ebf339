// The parts of a timeline view, each without a widget.
#include "gui/timeline_view/state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QSignalSpy>

#include "gui/timeline_view/held_keys.hpp"
#include "tests/gui/timeline/row_of_pieces.hpp"
#include "tests/gui/timeline/shown_pipeline.hpp"

namespace meshwright::gui {
namespace {

/// Four ranks whose lanes do not fit in 60 pixels; 40 ms are visible in 1000 pixels.
class TimelineStates : public testing::Test {
 protected:
  TimelineStates() : shown(shown_pipeline("1f1b", {.devices = 4, .microbatches = 8})) {
    state.content.tracks = shown.tracks;
    state.content.causes = shown.causes;
    state.lanes.arrange(60);
    state.viewport.set_width(1000);
    state.viewport.show_range(Nanoseconds(0), Nanoseconds(40'000'000));
  }
  bool is_row_visible(std::size_t row) const {
    for (const Lane& lane : state.lanes.arrangement()->lanes)
      if (lane.kind == LaneKind::kSlices && lane.row == static_cast<std::int32_t>(row))
        return lane.top >= state.lanes.scroll() &&
               lane.top + lane.height <= state.lanes.scroll() + state.lanes.height();
    return false;
  }
  std::size_t row_of(int rank, bool is_compute) const {
    for (std::size_t row = 0; row < shown.tracks->rows.size(); ++row)
      if (shown.tracks->rows[row].rank == rank && shown.tracks->rows[row].is_compute == is_compute)
        return row;
    ADD_FAILURE() << "no such row of rank " << rank;
    return 0;
  }

  ShownPipeline shown;
  TimelineState state;
};

// ---- viewport -----------------------------------------------------------------------------------

TEST_F(TimelineStates, ZoomAroundATime) {
  state.viewport.zoom_by(0.5, 250);
  EXPECT_EQ(state.viewport.visible_from(), Nanoseconds(5'000'000));
  EXPECT_EQ(state.viewport.visible_to(), Nanoseconds(25'000'000));
}

TEST_F(TimelineStates, AnnounceEveryNewRangeOnce) {
  state.viewport.show_range(Nanoseconds(0), Nanoseconds(10'000'000));
  QSignalSpy spy(&state.viewport, &TimelineViewport::visible_range_changed);
  state.viewport.pan_by(25);  // 10 us a pixel
  ASSERT_EQ(spy.size(), 1);
  EXPECT_EQ(spy[0].at(0).toLongLong(), 250'000);
  state.viewport.pan_by(0);
  EXPECT_EQ(spy.size(), 1);
}

TEST_F(TimelineStates, NeverShowLessThanTheShortestWindow) {
  state.viewport.show_range(Nanoseconds(1'000), Nanoseconds(1'002));
  EXPECT_EQ(state.viewport.window().span(), kShortestWindow);
  EXPECT_EQ(state.viewport.visible_from(), Nanoseconds(1'001) - kShortestWindow / 2);
}

// ---- lanes --------------------------------------------------------------------------------------

TEST_F(TimelineStates, ScrollWithinTheLanesOnly) {
  ASSERT_GT(state.lanes.most_scroll(), 0);
  QSignalSpy spy(&state.lanes, &TimelineLanes::scrolled);
  state.lanes.scroll_to(10'000);
  EXPECT_EQ(state.lanes.scroll(), state.lanes.most_scroll());
  state.lanes.scroll_by_pages(-100);
  EXPECT_EQ(state.lanes.scroll(), 0);
  state.lanes.scroll_to(-5);
  EXPECT_EQ(spy.size(), 2);
  state.lanes.scroll_to(10'000);
  state.lanes.arrange(2'000);  // now all lanes fit
  EXPECT_EQ(state.lanes.scroll(), 0);
}

TEST_F(TimelineStates, RevealCollapsedAndScrolledRows) {
  const std::size_t last = row_of(3, true), hidden = row_of(0, false);
  EXPECT_FALSE(is_row_visible(last));
  state.lanes.reveal_row(last);
  EXPECT_TRUE(is_row_visible(last));
  EXPECT_FALSE(is_row_visible(hidden));
  QSignalSpy spy(&state.lanes, &TimelineLanes::arranged);
  state.lanes.reveal_row(hidden);
  EXPECT_TRUE(is_row_visible(hidden));
  EXPECT_EQ(spy.size(), 1);
  EXPECT_TRUE(state.lanes.options().open_ranks.count(0));
}

TEST_F(TimelineStates, KeepPinnedRowsOnTop) {
  state.lanes.toggle_pin(row_of(2, true));
  EXPECT_TRUE(state.lanes.arrangement()->lanes.front().is_pinned);
  EXPECT_EQ(state.lanes.arrangement()->lanes.front().rank, 2);
  state.lanes.toggle_pin(row_of(2, true));
  EXPECT_FALSE(state.lanes.arrangement()->lanes.front().is_pinned);
}

// ---- selection ----------------------------------------------------------------------------------

TEST_F(TimelineStates, SelectEitherASliceOrABubble) {
  TimelineSelection& selection = state.selection;
  const Bubble& bubble = shown.causes->bubbles.front();
  selection.select_slice(3);
  selection.select_bubble(bubble);
  EXPECT_FALSE(selection.slice());
  EXPECT_EQ(selection.times(), std::pair(bubble.from, bubble.to));
  selection.select_slice(4);
  EXPECT_FALSE(selection.bubble());
  EXPECT_EQ(selection.times(), std::pair(shown.tracks->start_of(4), shown.tracks->end_of(4)));
  selection.select_slice(shown.tracks->slice_count());  // there is no such slice
  EXPECT_FALSE(selection.slice());
}

TEST_F(TimelineStates, ForgetTheSelectionOfReplacedTracks) {
  TimelineSelection& selection = state.selection;
  selection.select_slice(3);
  selection.select_area_of_selection();
  selection.mark_slices({1, 2});
  QSignalSpy slices(&selection, &TimelineSelection::slice_selected);
  QSignalSpy areas(&selection, &TimelineSelection::area_cleared);
  selection.forget();
  EXPECT_FALSE(selection.slice() || selection.area());
  EXPECT_TRUE(selection.marked_slices().empty());
  EXPECT_TRUE(slices.isEmpty());
  EXPECT_EQ(areas.size(), 1);
}

// ---- navigation ---------------------------------------------------------------------------------

TEST_F(TimelineStates, GoToASliceAndShowIt) {
  const std::size_t slice = shown.tracks->row_begin[row_of(3, true)];
  state.viewport.show_range(Nanoseconds(20'000'000), Nanoseconds(30'000'000));
  state.navigation.go_to_slice(slice);
  EXPECT_EQ(state.selection.slice(), slice);
  EXPECT_TRUE(is_row_visible(row_of(3, true)));
  EXPECT_LE(state.viewport.visible_from(), shown.tracks->start_of(slice));
  EXPECT_GE(state.viewport.visible_to(), shown.tracks->end_of(slice));
  EXPECT_EQ(state.viewport.window().span(), Nanoseconds(10'000'000));  // wide enough already
}

TEST_F(TimelineStates, CycleThroughMatches) {
  state.navigation.show_hits({2, 5, 9});
  std::vector<std::size_t> seen{*state.selection.slice()};
  for (int i = 0; i < 3; ++i) {
    state.navigation.next_hit();
    seen.push_back(*state.selection.slice());
  }
  EXPECT_EQ(seen[3], seen[0]);
  state.navigation.previous_hit();
  EXPECT_EQ(state.selection.slice(), seen[2]);
  state.selection.clear();
  state.navigation.next_hit();
  EXPECT_FALSE(state.selection.slice());
}

// ---- keys that are held -------------------------------------------------------------------------

TEST(HeldKeys, AreRecognizedByPhysicalPosition) {
  HeldKeys keys;
  keys.set_stepwise(true);
  QSignalSpy zoomed(&keys, &HeldKeys::zoomed), panned(&keys, &HeldKeys::panned);
  EXPECT_TRUE(keys.press(Qt::Key_Z, 25));   // the place of W
  EXPECT_FALSE(keys.press(Qt::Key_W, 52));  // another place
  EXPECT_TRUE(keys.press(Qt::Key_A, 0));    // no place known
  ASSERT_EQ(zoomed.size(), 1);
  EXPECT_DOUBLE_EQ(zoomed[0].at(0).toDouble(), 0.7);
  ASSERT_EQ(panned.size(), 1);
  EXPECT_DOUBLE_EQ(panned[0].at(0).toDouble(), -0.15);
  keys.set_keys({Qt::Key_I, 0, 0, 0});
  EXPECT_FALSE(keys.press(Qt::Key_Z, 25));
  EXPECT_TRUE(keys.press(Qt::Key_I, 31));
}

TEST(HeldKeys, MoveUntilTheLastOneIsReleased) {
  HeldKeys keys;
  QSignalSpy zoomed(&keys, &HeldKeys::zoomed);
  keys.press(Qt::Key_W, 0);
  EXPECT_EQ(zoomed.size(), 1);  // at once
  keys.press(Qt::Key_D, 0);
  EXPECT_TRUE(keys.release(Qt::Key_W, 0));
  EXPECT_TRUE(keys.is_moving());
  EXPECT_TRUE(keys.release(Qt::Key_D, 0));
  EXPECT_FALSE(keys.is_moving());
}

// ---- editing ------------------------------------------------------------------------------------

TEST(TimelineEditing, AsksTheJudgeOncePerOrderAndDropsValidOrdersOnly) {
  const TimelineTracks tracks =
      row_of_pieces({{kF, 0, 0, 10}, {kF, 1, 10, 20}, {kB, 0, 20, 40}, {kB, 1, 40, 60}});
  TimelineEditing editing;
  int asked = 0;
  QString verdict;
  editing.set_order_judge([&](const OrderEdit&) {
    ++asked;
    return verdict;
  });
  QSignalSpy spy(&editing, &TimelineEditing::order_edited);
  editing.drag_pass(tracks, 0, Nanoseconds(18));  // after F1
  editing.drag_pass(tracks, 0, Nanoseconds(19));
  EXPECT_EQ(asked, 1);
  editing.drop_pass();
  ASSERT_EQ(spy.size(), 1);
  EXPECT_EQ(spy[0].at(0).value<OrderEdit>().to, 1);
  verdict = QStringLiteral("deadlock");
  editing.drag_pass(tracks, 0, Nanoseconds(55));
  EXPECT_EQ(editing.order_problem(), verdict);
  editing.drop_pass();
  EXPECT_EQ(spy.size(), 1);
  EXPECT_FALSE(editing.order());
}

// 200 pixels double the time, in steps of 5 %.
TEST(TimelineEditing, SlowsAStageDownByPixels) {
  TimelineEditing editing;
  QSignalSpy spy(&editing, &TimelineEditing::slowdown_requested);
  editing.begin_slowdown(2);
  editing.drag_slowdown(200);
  EXPECT_DOUBLE_EQ(editing.slowdown(), 2.0);
  editing.drag_slowdown(3);
  EXPECT_DOUBLE_EQ(editing.slowdown(), 1.0);
  editing.drag_slowdown(-10'000);
  EXPECT_DOUBLE_EQ(editing.slowdown(), 0.25);
  editing.finish_slowdown();
  ASSERT_EQ(spy.size(), 4);
  EXPECT_EQ(spy.back().at(0).toInt(), 2);
  EXPECT_DOUBLE_EQ(spy.back().at(1).toDouble(), 0.25);
  EXPECT_TRUE(spy.back().at(2).toBool());
}

}  // namespace
}  // namespace meshwright::gui
