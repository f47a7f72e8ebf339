// Keyboard, mouse and wheel input of the timeline, on the offscreen platform.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QContextMenuEvent>
#include <QImage>
#include <QMenu>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include "tests/gui/timeline_view/timeline_view_fixture.hpp"

namespace meshwright::gui {
namespace {

using ::testing::ElementsAre;

// ---- keys ---------------------------------------------------------------------------------------

TEST_F(TimelineViewTest, ZoomsAndPansWithWASD) {
  const Nanoseconds before = span();
  QTest::keyClick(&view, Qt::Key_W);
  EXPECT_LT(span(), before);
  const Nanoseconds closer = span(), from = view.viewport().visible_from();
  QTest::keyClick(&view, Qt::Key_D);
  EXPECT_GT(view.viewport().visible_from(), from);
  EXPECT_EQ(span(), closer);
  QTest::keyClick(&view, Qt::Key_A);
  QTest::keyClick(&view, Qt::Key_S);
  EXPECT_GT(span(), closer);
}

// On a French keyboard Z is at the position of W on a US one (scan code 25).
TEST_F(TimelineViewTest, RecognizesKeysByPhysicalPosition) {
  const auto press = [&](int key, quint32 scan_code) {
    QKeyEvent down(QEvent::KeyPress, key, Qt::NoModifier, scan_code, 0, 0);
    QApplication::sendEvent(&view, &down);
    QKeyEvent up(QEvent::KeyRelease, key, Qt::NoModifier, scan_code, 0, 0);
    QApplication::sendEvent(&view, &up);
  };
  const Nanoseconds before = span();
  press(Qt::Key_W, 52);
  EXPECT_EQ(span(), before);
  press(Qt::Key_Z, 25);
  EXPECT_LT(span(), before);
}

TEST_F(TimelineViewTest, UsesCustomKeysInsteadOfWASD) {
  view.set_held_keys({Qt::Key_I, 0, 0, 0});
  const Nanoseconds before = span();
  QTest::keyClick(&view, Qt::Key_W);
  EXPECT_EQ(span(), before);
  QTest::keyClick(&view, Qt::Key_I);
  EXPECT_LT(span(), before);
  const Nanoseconds closer = span();
  QTest::keyClick(&view, Qt::Key_S);  // as before
  EXPECT_GT(span(), closer);
}

TEST_F(TimelineViewTest, SortsAndExpandsRanksByKey) {
  const auto is_ticked = [&](const char* name) {
    const auto all = view.actions();
    return (*std::find_if(all.begin(), all.end(),
                          [&](const QAction* action) { return action->objectName() == name; }))
        ->isChecked();
  };
  for (const LaneOrder order :
       {LaneOrder::kPipelineRank, LaneOrder::kStraggler, LaneOrder::kRank}) {
    QTest::keyClick(&view, Qt::Key_O);
    EXPECT_EQ(view.lanes().options().order, order);
  }
  QTest::keyClick(&view, Qt::Key_U);
  EXPECT_FALSE(view.lanes().options().fold_replicas);
  EXPECT_TRUE(is_ticked("timeline.replicas"));
  QTest::keyClick(&view, Qt::Key_E);
  EXPECT_TRUE(view.lanes().options().all_open);
  EXPECT_TRUE(is_ticked("timeline.streams"));
  view.lanes().set_all_streams_shown(false);
  EXPECT_FALSE(is_ticked("timeline.streams"));
  QTest::keyClick(&view, Qt::Key_C);
  EXPECT_TRUE(is_ticked("timeline.critical-path"));
}

TEST_F(TimelineViewTest, MovesSmoothlyWhileAKeyIsHeld) {
  view.appearance().set_reduced_motion(false);
  const Nanoseconds before = span();
  QTest::keyPress(&view, Qt::Key_W);
  QTRY_VERIFY_WITH_TIMEOUT(span() < before * 9 / 10, 3000);
  QTest::keyRelease(&view, Qt::Key_W);
  const Nanoseconds after = span();
  QTest::qWait(60);
  EXPECT_EQ(span(), after);
}

TEST_F(TimelineViewTest, StepsFromSliceToSliceAndAlongDependencies) {
  const std::size_t forward = slice_named("r0.compute.s0.F0");
  view.selection().select_slice(forward);
  QTest::keyClick(&view, Qt::Key_Period);
  EXPECT_EQ(view.selection().slice(), forward + 1);
  QTest::keyClick(&view, Qt::Key_Comma);
  EXPECT_EQ(view.selection().slice(), forward);
  // F0 of stage 0 → its message → … → F0 of stage 1, and back again.
  QTest::keyClick(&view, Qt::Key_BracketRight);
  ASSERT_TRUE(view.selection().slice());
  EXPECT_NE(view.selection().slice(), forward);
  QTest::keyClick(&view, Qt::Key_BracketLeft);
  EXPECT_EQ(view.selection().slice(), forward);
  QTest::keyClick(&view, Qt::Key_Down);
  ASSERT_TRUE(view.selection().slice());
  EXPECT_NE(shown.tracks->row_of(*view.selection().slice()), shown.tracks->row_of(forward));
  QTest::keyClick(&view, Qt::Key_Escape);
  EXPECT_FALSE(view.selection().slice());
}

TEST_F(TimelineViewTest, TurnsTheSelectionIntoAnAreaAndCursors) {
  const std::size_t slice = slice_named("r1.compute.s1.F0");
  view.selection().select_slice(slice);
  QTest::keyClick(&view, Qt::Key_R);
  ASSERT_TRUE(view.selection().area());
  EXPECT_EQ(view.selection().area()->from, shown.tracks->start_of(slice));
  EXPECT_THAT(view.selection().area()->rows, ElementsAre(shown.tracks->row_of(slice)));
  QTest::keyClick(&view, Qt::Key_M);
  EXPECT_EQ(view.selection().cursor_a(), shown.tracks->start_of(slice));
  EXPECT_EQ(view.selection().cursor_b(), shown.tracks->end_of(slice));
}

TEST_F(TimelineViewTest, CentersTheSelectionThenZoomsToFit) {
  const std::size_t slice = slice_named("r2.compute.s2.B3");
  view.selection().select_slice(slice);
  const Nanoseconds before = span();
  QTest::keyClick(&view, Qt::Key_F);
  EXPECT_EQ(span(), before);
  EXPECT_NEAR(static_cast<double>((view.viewport().visible_from() + span() / 2).value),
              static_cast<double>(middle_of(slice).value), 2);
  QTest::keyClick(&view, Qt::Key_F);
  EXPECT_LT(span(), before);
}

TEST_F(TimelineViewTest, StepsThroughBubblesLargestFirst) {
  QSignalSpy spy(&view.selection(), &TimelineSelection::bubble_selected);
  QTest::keyClick(&view, Qt::Key_B);
  QTest::keyClick(&view, Qt::Key_B);
  QTest::keyClick(&view, Qt::Key_B, Qt::ShiftModifier);
  ASSERT_EQ(spy.size(), 3);
  EXPECT_EQ(spy[0].at(0).toLongLong(), shown.causes->bubbles[0].slice_after);
  EXPECT_EQ(spy[1].at(0).toLongLong(), shown.causes->bubbles[1].slice_after);
  EXPECT_EQ(spy[2].at(0).toLongLong(), shown.causes->bubbles[0].slice_after);
}

TEST_F(TimelineViewTest, HasAUniqueShortcutForEveryAction) {
  std::set<QString> shortcuts;
  for (const QAction* action : view.actions()) {
    EXPECT_FALSE(action->text().isEmpty());
    EXPECT_FALSE(action->shortcut().isEmpty()) << action->objectName().toStdString();
    EXPECT_TRUE(shortcuts.insert(action->shortcut().toString()).second)
        << action->shortcut().toString().toStdString();
  }
  // All actions can be triggered at any time, with and without tracks.
  for (QAction* action : view.actions()) action->trigger();
  view.set_tracks(nullptr);
  for (QAction* action : view.actions()) action->trigger();
}

// ---- pointer ------------------------------------------------------------------------------------

TEST_F(TimelineViewTest, SelectsTheClickedSlice) {
  const std::size_t slice = slice_named("r2.compute.s2.F1");
  QSignalSpy spy(&view.selection(), &TimelineSelection::slice_selected);
  QTest::mouseClick(&view, Qt::LeftButton, {}, {x_of(middle_of(slice)), y_of_rank(2)});
  EXPECT_EQ(view.selection().slice(), slice);
  ASSERT_EQ(spy.size(), 1);
  EXPECT_EQ(spy[0].at(0).toLongLong(), static_cast<qint64>(slice));
}

// The bubble of rank 0 between its warm-up and its first backward pass.
TEST_F(TimelineViewTest, FollowsTheCausesOfABubbleClickByClick) {
  const std::size_t backward = slice_named("r0.compute.s0.B0");
  QSignalSpy text(&view, &TimelineView::hover_text_changed);
  const QPoint in_bubble(x_of(shown.tracks->start_of(backward)) - 8, y_of_rank(0));
  QSignalSpy spy(&view.selection(), &TimelineSelection::bubble_selected);
  QTest::mouseClick(&view, Qt::LeftButton, {}, in_bubble);
  ASSERT_EQ(spy.size(), 1);
  EXPECT_EQ(spy[0].at(0).toLongLong(), static_cast<qint64>(backward));
  EXPECT_THAT(text.back().at(0).toString().toStdString(),
              testing::HasSubstr("B0 of stage 0 waits"));
  QTest::mouseClick(&view, Qt::LeftButton, {}, in_bubble);
  ASSERT_TRUE(view.selection().slice());
  EXPECT_EQ(shown.tracks->kind[*view.selection().slice()], SliceKind::kReceive);
  QTest::keyClick(&view, Qt::Key_BracketLeft);
  EXPECT_EQ(shown.tracks->kind[*view.selection().slice()], SliceKind::kSend);
}

// 200 pixels of 40 us from pixel 100 on: 4 ms to 12.04 ms, the end pixel counted.
TEST_F(TimelineViewTest, SelectsTheDraggedArea) {
  const int first = y_of_rank(1), last = y_of_rank(2);
  drag({kLeft + 100, first}, {kLeft + 300, last});
  ASSERT_TRUE(view.selection().area());
  EXPECT_EQ(view.selection().area()->from, Nanoseconds(4'000'000));
  EXPECT_EQ(view.selection().area()->to, Nanoseconds(12'040'000));
  std::vector<int> ranks;
  const TimelineArea area = *view.selection().area();
  for (const std::size_t row : area.rows) ranks.push_back(shown.tracks->rows[row].rank);
  EXPECT_THAT(ranks, ElementsAre(1, 2));
}

TEST_F(TimelineViewTest, PansWithShiftAndTheMiddleButton) {
  const Nanoseconds from = view.viewport().visible_from(), length = span();
  view.viewport().show_range(Nanoseconds(5'000'000), Nanoseconds(15'000'000));
  drag({kLeft + 500, kTop + 20}, {kLeft + 400, kTop + 20}, Qt::ShiftModifier);
  EXPECT_EQ(view.viewport().visible_from(), Nanoseconds(6'000'000));
  drag({kLeft + 400, kTop + 20}, {kLeft + 500, kTop + 20}, {}, Qt::MiddleButton);
  EXPECT_EQ(view.viewport().visible_from(), Nanoseconds(5'000'000));
  EXPECT_FALSE(view.selection().area());
  EXPECT_NE(from, view.viewport().visible_from());
  EXPECT_NE(length, span());
}

TEST_F(TimelineViewTest, ZoomsAtThePointerWithTheWheel) {
  const QPoint at(kLeft + 250, kTop + 20);
  const Nanoseconds before = span();
  wheel(at, 2, Qt::ControlModifier);
  EXPECT_EQ(span(), before / 2);  // two notches halve
  EXPECT_NEAR(static_cast<double>((view.viewport().visible_from() + span() / 4).value), 10'000'000,
              50'000);
  const Nanoseconds closer = view.viewport().visible_from();
  wheel(at, -1, Qt::ShiftModifier);
  EXPECT_GT(view.viewport().visible_from(), closer);
}

TEST_F(TimelineViewTest, MeasuresBetweenTwoCursorsOnTheRuler) {
  QSignalSpy spy(&view.selection(), &TimelineSelection::cursors_changed);
  drag({kLeft + 100, 40}, {kLeft + 200, 40});
  drag({kLeft + 500, 40}, {kLeft + 600, 40}, Qt::ShiftModifier);
  EXPECT_EQ(view.selection().cursor_a(), Nanoseconds(8'000'000));
  EXPECT_EQ(view.selection().cursor_b(), Nanoseconds(24'000'000));
  drag({kLeft + 600, 40}, {kLeft + 550, 40});  // takes hold of B
  EXPECT_EQ(view.selection().cursor_b(), Nanoseconds(22'000'000));
  EXPECT_EQ(view.selection().cursor_a(), Nanoseconds(8'000'000));
  EXPECT_GT(spy.size(), 3);
}

TEST_F(TimelineViewTest, FollowsTheOverview) {
  view.viewport().show_range(Nanoseconds(0), Nanoseconds(4'000'000));
  drag({kLeft + 500, 10}, {kLeft + 600, 10});
  EXPECT_EQ(span(), Nanoseconds(4'000'000));
  const double middle = static_cast<double>((view.viewport().visible_from() + span() / 2).value);
  EXPECT_NEAR(middle / static_cast<double>(shown.tracks->end.value), 0.6, 0.02);
}

// ---- editing ------------------------------------------------------------------------------------

TEST_F(TimelineViewTest, RequestsASlowdownByDraggingAStageHandle) {
  view.editing().set_editable(true);
  const int y = y_of_rank(2);
  QSignalSpy spy(&view.editing(), &TimelineEditing::slowdown_requested);
  drag({kLeft - 5, y}, {kLeft + 195, y});  // 200 pixels: twice as long
  ASSERT_GE(spy.size(), 2);
  EXPECT_EQ(spy.back().at(0).toInt(), 2);
  EXPECT_DOUBLE_EQ(spy.back().at(1).toDouble(), 2.0);
  EXPECT_TRUE(spy.back().at(2).toBool());
  EXPECT_FALSE(spy.front().at(2).toBool());
  view.editing().set_editable(false);
  spy.clear();
  drag({kLeft - 5, y}, {kLeft + 195, y});
  EXPECT_TRUE(spy.isEmpty());
}

// Slows down rank 2 from the context menu of its row; rows that are not editable have no such
// entry.
TEST_F(TimelineViewTest, OffersASlowdownInTheContextMenu) {
  QSignalSpy spy(&view.editing(), &TimelineEditing::slowdown_requested);
  const auto first_entry = [&](int y) {
    QString text;
    QTimer::singleShot(0, &view, [&] {
      auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
      ASSERT_NE(menu, nullptr);
      text = menu->actions().front()->text();
      if (text.contains("20 %")) menu->actions().front()->trigger();
      menu->close();
    });
    const QPoint at(kLeft + 100, y);
    QContextMenuEvent event(QContextMenuEvent::Mouse, at, view.mapToGlobal(at));
    QApplication::sendEvent(&view, &event);
    return text;
  };
  const int y = y_of_rank(2);
  EXPECT_FALSE(first_entry(y).contains("20 %"));
  view.editing().set_editable(true);
  EXPECT_TRUE(first_entry(y).contains("20 %"));
  ASSERT_EQ(spy.size(), 1);
  EXPECT_EQ(spy[0].at(0).toInt(), 2);
  EXPECT_DOUBLE_EQ(spy[0].at(1).toDouble(), 1.2);
}

// Every mouse move triggers a new simulation; the drag continues with the new tracks.
TEST_F(TimelineViewTest, ContinuesADragWhenTracksAreReplaced) {
  view.editing().set_editable(true);
  const int y = y_of_rank(1);
  QSignalSpy spy(&view.editing(), &TimelineEditing::slowdown_requested);
  QObject::connect(&view.editing(), &TimelineEditing::slowdown_requested, &view,
                   [&] { view.set_tracks(shown.tracks); });
  drag({kLeft - 5, y}, {kLeft + 195, y});
  EXPECT_EQ(spy.size(), 5);
  EXPECT_EQ(spy.back().at(0).toInt(), 1);
  EXPECT_TRUE(spy.back().at(2).toBool());
}

TEST_F(TimelineViewTest, EditsTheOrderByDraggingIfItIsValid) {
  view.editing().set_editable(true);
  int asked = 0;
  QString verdict;
  view.editing().set_order_judge([&](const OrderEdit&) {
    ++asked;
    return verdict;
  });
  const std::size_t slice = slice_named("r0.compute.s0.F1");
  const QPoint at(x_of(middle_of(slice)), y_of_rank(0));
  const QPoint to = at + QPoint(x_of(Nanoseconds(2'100'000)) - x_of(Nanoseconds(0)), 0);
  QSignalSpy spy(&view.editing(), &TimelineEditing::order_edited);
  drag(at, to);  // not selected yet: an area
  EXPECT_TRUE(spy.isEmpty());
  view.selection().clear();
  QTest::mouseClick(&view, Qt::LeftButton, {}, at);
  drag(at, to);
  ASSERT_EQ(spy.size(), 1);
  const auto edit = spy[0].at(0).value<OrderEdit>();
  EXPECT_EQ(edit.rank, 0);
  EXPECT_EQ(edit.from, 1);
  EXPECT_EQ(edit.to, 3);
  EXPECT_GT(asked, 0);
  verdict = QStringLiteral("deadlock");
  drag(at, to);
  EXPECT_EQ(spy.size(), 1);
}

// ---- finding ------------------------------------------------------------------------------------

// The pointer rests while keys zoom: another slice comes under it.
TEST_F(TimelineViewTest, DescribesWhatIsUnderThePointerAfterKeysHaveMovedTheContent) {
  QString said;
  QObject::connect(&view, &TimelineView::hover_text_changed, [&](const QString& s) { said = s; });
  const QPoint at(x_of(middle_of(slice_named("r0.compute.s0.F0"))), y_of_rank(0));
  QTest::mouseMove(&view, at);
  EXPECT_TRUE(said.startsWith("F0")) << said.toStdString();
  QTest::keyClick(&view, Qt::Key_End);
  EXPECT_FALSE(said.startsWith("F0")) << said.toStdString();
}

TEST_F(TimelineViewTest, FindsSlicesByName) {
  const std::vector<std::uint32_t> found = slices_named(*shown.tracks, "f7");
  ASSERT_EQ(found.size(), 4U);  // one on each rank
  view.navigation().show_hits(found);
  const auto first = view.selection().slice();
  QTest::keyClick(&view, Qt::Key_Return);
  EXPECT_NE(view.selection().slice(), first);
  QTest::keyClick(&view, Qt::Key_Return, Qt::ShiftModifier);
  EXPECT_EQ(view.selection().slice(), first);
  view.navigation().show_hits({});
  QTest::keyClick(&view, Qt::Key_Return);
  EXPECT_EQ(view.selection().slice(), first);
}

TEST_F(TimelineViewTest, GoesToRanksAndTimes) {
  EXPECT_TRUE(view.navigation().go_to(QStringLiteral("r3 12 ms")));
  EXPECT_EQ(view.selection().cursor_a(), Nanoseconds(12'000'000));
  EXPECT_TRUE(view.navigation().go_to(QStringLiteral("2")));
  EXPECT_TRUE(view.navigation().go_to(QStringLiteral("3.5us")));
  for (const char* nothing : {"", "r99", "x", "12 parsecs", "r1 x"})
    EXPECT_FALSE(view.navigation().go_to(QString::fromLatin1(nothing))) << nothing;
}

// ---- pictures -----------------------------------------------------------------------------------

TEST_F(TimelineViewTest, PaintsSlicesInTheirColors) {
  const QImage image = to_image(view.snapshot());
  const int y = y_of_rank(1);
  for (const char* name : {"r1.compute.s1.F2", "r1.compute.s1.B3"}) {
    const std::size_t slice = slice_named(name);
    // Next to the label, inside the box.
    const int x = x_of(shown.tracks->start_of(slice)) + 4;
    const Argb wanted = light_colors().slice[static_cast<std::size_t>(shown.tracks->kind[slice])];
    EXPECT_EQ(image.pixel(x, y), wanted) << name;
  }
}

TEST_F(TimelineViewTest, KeepsTheRangeWhenASliderMoves) {
  view.viewport().show_range(Nanoseconds(3'000'000), Nanoseconds(9'000'000));
  view.set_tracks(
      shown_pipeline("1f1b", {.devices = 4, .microbatches = 9}).tracks);  // a little longer
  EXPECT_EQ(view.viewport().visible_from(), Nanoseconds(3'000'000));
  view.set_tracks(shown_pipeline("1f1b", {.devices = 4, .microbatches = 64}).tracks);
  EXPECT_LT(view.viewport().visible_from(), Nanoseconds(0));
}

TEST_F(TimelineViewTest, GlidesToAnotherOrderUnlessMotionIsReduced) {
  const ShownPipeline other = shown_pipeline("gpipe", {.devices = 4, .microbatches = 8});
  const TimeWindow window = view.viewport().window();
  view.set_tracks(other.tracks);
  view.glide_from(*shown.tracks, window);
  EXPECT_FALSE(view.is_gliding());
  view.appearance().set_reduced_motion(false);
  view.glide_from(*shown.tracks, window);
  EXPECT_TRUE(view.is_gliding());
  QImage under_way(view.size(), QImage::Format_RGB32);
  view.render(&under_way);
  EXPECT_TRUE(QTest::qWaitFor([&] { return !view.is_gliding(); }, 5'000));
  view.wait_for_painters();
  view.clearFocus();  // its frame is not part of the picture
  QImage arrived(view.size(), QImage::Format_RGB32);
  view.render(&arrived);
  EXPECT_NE(under_way, arrived);
  EXPECT_EQ(arrived.copy(kLeft, kTop, 1000, 340),
            to_image(view.snapshot()).copy(kLeft, kTop, 1000, 340));
}

TEST_F(TimelineViewTest, ShowsCountersWhereThereIsRoom) {
  const auto rows_end = [&] {  // of the last row that has a slice under the pointer
    int end = 0;
    QSignalSpy spy(&view, &TimelineView::slice_hovered);
    for (int y = kTop + 2; y < view.height(); y += 2) {
      QTest::mouseMove(&view, {x_of(middle_of(slice_named("r3.compute.s3.B3"))), y});
      if (!spy.isEmpty() && spy.back().at(0).toLongLong() >= 0) end = y;
    }
    return end;
  };
  view.resize(view.width(), 900);
  const int without = rows_end();
  view.lanes().set_counters_where_room();
  EXPECT_GT(rows_end(), without);
  view.resize(view.width(), 230);
  const int low = rows_end();
  view.lanes().set_counters_shown(false);
  EXPECT_EQ(rows_end(), low);  // there was no room
}

TEST_F(TimelineViewTest, ShowsAMeasuredRunBelowItsPrediction) {
  const ShownPipeline measured =
      shown_pipeline("1f1b", {.devices = 4, .microbatches = 8}, Ticks(1'200'000'000));
  const auto pairs_at = [&](ComparisonAlignment alignment, Nanoseconds offset) {
    return std::make_shared<const TimelineComparison>(
        compare_tracks(*shown.tracks, *measured.tracks, alignment, offset));
  };
  view.set_comparison(shown.tracks, measured.tracks,
                      pairs_at(ComparisonAlignment::kIterationStart, Nanoseconds(0)));
  ASSERT_NE(view.state().content.comparison, nullptr);
  EXPECT_EQ(view.state().content.comparison->slices.size(), shown.tracks->slice_count());
  EXPECT_EQ(view.state().content.comparison->measured_alone, 0U);
  view.wait_for_painters();
  EXPECT_FALSE(to_image(view.snapshot()).isNull());
  // A click on a measured slice selects its predicted counterpart.
  const auto b3 = slices_named(*measured.tracks, "r2.compute.s2.B3");
  ASSERT_EQ(b3.size(), 1U);
  const int x = x_of(measured.tracks->start_of(b3[0]) + measured.tracks->duration_of(b3[0]) / 2);
  QSignalSpy hovered(&view, &TimelineView::slice_hovered);
  QSignalSpy words(&view, &TimelineView::hover_text_changed);
  int y = y_of_rank(2);  // of the prediction; what was measured is somewhere below
  for (; y < view.height(); y += 2) {
    QTest::mouseMove(&view, {x, y});
    if (hovered.back().at(0).toLongLong() < 0 && words.back().at(0).toString().startsWith("B3"))
      break;
  }
  QTest::mouseClick(&view, Qt::LeftButton, {}, {x, y});
  EXPECT_EQ(view.selection().slice(), slice_named("r2.compute.s2.B3"));
  view.set_pairs(pairs_at(ComparisonAlignment::kFreeOffset, Nanoseconds(55)));
  EXPECT_EQ(view.state().content.comparison->offset, Nanoseconds(55));
  view.set_tracks(shown.tracks);
  EXPECT_EQ(view.state().content.comparison, nullptr);
}

}  // namespace
}  // namespace meshwright::gui
