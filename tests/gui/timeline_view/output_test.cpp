// Output of the timeline on any thread: images, tables, traces, and the view of screen readers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAccessible>
#include <QApplication>
#include <QFileInfo>
#include <QImage>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <thread>

#include "core/formats/file.hpp"
#include "gui/timeline/trace_files.hpp"
#include "gui/timeline_view/table_model.hpp"
#include "tests/gui/timeline/random_tracks.hpp"
#include "tests/gui/timeline_view/timeline_view_fixture.hpp"

namespace meshwright::gui {
namespace {

TEST_F(TimelineViewTest, SavesTheVisibleContent) {
  const QTemporaryDir folder;
  const auto path = [&](const char* name) {
    return folder.filePath(QLatin1String(name)).toStdString();
  };
  const TimelineSnapshot snapshot = view.snapshot();
  write_snapshot(snapshot, path("a.png"));
  EXPECT_EQ(QImage(QString::fromStdString(path("a.png"))).size(), view.size());
  write_snapshot(snapshot, path("b.png"), 2.0);
  EXPECT_EQ(QImage(QString::fromStdString(path("b.png"))).size(), view.size() * 2);
  write_snapshot(snapshot, path("c.pdf"));
  EXPECT_EQ(read_file(path("c.pdf")).substr(0, 5), "%PDF-");
  if (can_write_svg()) {
    write_snapshot(snapshot, path("d.svg"));
    EXPECT_THAT(read_file(path("d.svg")), testing::HasSubstr("<svg"));
  }
  EXPECT_THROW(write_snapshot(snapshot, path("e.docx")), InputError);
  EXPECT_FALSE(QFileInfo::exists(QString::fromStdString(path("e.docx"))));
  EXPECT_THROW(write_snapshot(snapshot, "/nowhere/at/all.png"), RuntimeFailure);
  EXPECT_THROW(write_snapshot(TimelineView().snapshot(), path("f.png")), InputError);
}

// Names and rulers are recorded on the GUI thread and painted elsewhere.
TEST_F(TimelineViewTest, PaintsEqualSnapshotsOnAnyThread) {
  view.selection().select_slice(slice_named("r1.compute.s1.F0"));
  view.wait_for_painters();
  QImage shown_now(view.size(), QImage::Format_RGB32);
  view.clearFocus();  // its frame is not part of the picture
  view.render(&shown_now);
  QImage painted;
  std::thread([&painted, snapshot = view.snapshot()] { painted = to_image(snapshot); }).join();
  const QRect body(kLeft, kTop, 1000, 340);
  EXPECT_EQ(painted.copy(body), shown_now.copy(body));
  // Recorded text may be offset by a fraction of a pixel; nothing else may differ.
  int different = 0;
  for (int y = 0; y < view.height(); ++y)
    for (int x = 0; x < view.width(); ++x)
      different += painted.pixel(x, y) != shown_now.pixel(x, y);
  EXPECT_LT(different, view.width() * view.height() / 100);
}

TEST_F(TimelineViewTest, SavesTheVisibleSlicesAsTableAndTrace) {
  const QTemporaryDir folder;
  view.viewport().show_range(Nanoseconds(0), Nanoseconds(2'500'000));
  const std::string csv = folder.filePath(QStringLiteral("a.csv")).toStdString();
  write_snapshot(view.snapshot(), csv);
  const std::string text = read_file(csv);
  EXPECT_THAT(text,
              testing::StartsWith("rank,stream,stage,name,kind,microbatch,start_ns,duration_ns\n"
                                  "0,compute,0,F0,F,0,0,1000000\n"));
  const std::string trace = folder.filePath(QStringLiteral("a.pftrace")).toStdString();
  write_snapshot(view.snapshot(), trace);
  const TimelineTracks again = read_trace_files({trace});
  EXPECT_EQ(static_cast<std::ptrdiff_t>(again.slice_count()) + 1,
            std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(to_table(view.snapshot()).toStdString(), text);
  view.selection().select_area(TimelineArea{{0, 1}, Nanoseconds(0), Nanoseconds(2'000'000)});
  const auto statistics =
      area_statistics(*shown.tracks, *view.selection().area(), shown.causes.get());
  EXPECT_EQ(to_table(view.snapshot()).toStdString(), to_tsv(*shown.tracks, statistics));
  EXPECT_EQ(area_text(view.snapshot(), AreaFormat::kMarkdown).toStdString(),
            to_markdown(*shown.tracks, statistics));
  EXPECT_EQ(area_text(view.snapshot(), AreaFormat::kJson).toStdString(),
            to_json(*shown.tracks, statistics));
  view.selection().select_area(std::nullopt);  // then of all that is visible: 2.5 ms
  EXPECT_THAT(area_text(view.snapshot(), AreaFormat::kJson).toStdString(),
              testing::StartsWith("{\"span_ns\":2500000,"));
}

// ---- for readers --------------------------------------------------------------------------------

TEST_F(TimelineViewTest, IsATableOfSlicesForScreenReaders) {
  QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(&view);
  ASSERT_NE(accessible, nullptr);
  QAccessibleTableInterface* table = accessible->tableInterface();
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->rowCount(), 4);
  EXPECT_EQ(table->columnCount(), 16);  // F and B of eight micro-batches
  QAccessibleInterface* cell = table->cellAt(1, 0);
  ASSERT_NE(cell, nullptr);
  const std::string text = cell->text(QAccessible::Name).toStdString();
  EXPECT_THAT(text, testing::HasSubstr("F0"));
  EXPECT_THAT(text, testing::HasSubstr("rank 1"));
  EXPECT_THAT(text, testing::HasSubstr("waits for"));
  cell->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
  EXPECT_EQ(view.selection().slice(), slice_named("r1.compute.s1.F0"));
  EXPECT_EQ(table->selectedCellCount(), 1);
  EXPECT_EQ(table->cellAt(99, 0), nullptr);
  EXPECT_THAT(table->rowDescription(0).toStdString(), testing::HasSubstr("idle"));
}

TEST_F(TimelineViewTest, ListsVisibleSlicesInATable) {
  view.viewport().show_range(Nanoseconds(0), Nanoseconds(2'500'000));
  TimelineTableModel table;
  view.fill_table(table);
  ASSERT_GT(table.rowCount(), 3);
  EXPECT_EQ(table.data(table.index(0, TimelineTableModel::kName)).toString(), "F0");
  EXPECT_EQ(table.data(table.index(0, TimelineTableModel::kStart)).toString(), "0 ns");
  EXPECT_EQ(table.data(table.index(1, TimelineTableModel::kDuration)).toString(), "1 ms");
  EXPECT_EQ(table.headerData(0, Qt::Horizontal).toString(), "Rank");
  EXPECT_FALSE(table.is_cut());
}

// ---- threads ------------------------------------------------------------------------------------

// When a view is destroyed, running painters are canceled quickly and never deliver.
TEST(TimelineViews, MayBeDestroyedWhilePainting) {
  const auto large = std::make_shared<const TimelineTracks>(
      random_tracks(1, {.rows = 32, .slices_per_row = 20'000}));
  for (int i = 0; i < 10; ++i) {
    TimelineView view;
    view.resize(800, 600);
    view.show();
    view.set_tracks(large);
    for (int step = 0; step < 5; ++step) {
      view.viewport().zoom_in();
      if (i % 2 == 0) QApplication::processEvents();
    }
  }
}

TEST(TimelineViews, ShowTheLatestOfManyRequests) {
  const auto large = std::make_shared<const TimelineTracks>(
      random_tracks(1, {.rows = 8, .slices_per_row = 5'000}));
  TimelineView view;
  view.resize(800, 400);
  view.show();
  view.set_tracks(large);
  for (int step = 0; step < 30; ++step) view.viewport().zoom_in();
  view.wait_for_painters();
  QImage shown(view.size(), QImage::Format_RGB32);
  view.render(&shown);
  EXPECT_EQ(shown.copy(kLeft, kTop, 600, 300),
            to_image(view.snapshot()).copy(kLeft, kTop, 600, 300));
}

}  // namespace
}  // namespace meshwright::gui
