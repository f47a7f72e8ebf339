/// The main tasks of all screens other than Explore, performed as a user would.
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSemaphore>
#include <QSignalSpy>
#include <QSlider>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTextBrowser>
#include <QTimer>

#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "core/formats/schedule_csv.hpp"
#include "core/timeline/timeline_of.hpp"
#include "core/timeline/timeline_steps.hpp"
#include "gui/screens/calibration_screen.hpp"
#include "gui/screens/compare_dialog.hpp"
#include "gui/screens/compare_screen.hpp"
#include "gui/screens/explore_screen.hpp"
#include "gui/screens/hand_over.hpp"
#include "gui/screens/lecture_screen.hpp"
#include "gui/screens/plans_screen.hpp"
#include "gui/screens/run_screen.hpp"
#include "gui/screens/slice_table.hpp"
#include "gui/screens/sweep_screen.hpp"
#include "gui/text/number_text.hpp"
#include "gui/timeline_view/table_model.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/point_chart.hpp"
#include "gui/window/job_progress.hpp"
#include "models/launch/launch_text.hpp"
#include "tests/gui/window/window_fixture.hpp"

namespace meshwright::gui {
namespace {

class ScreensTest : public WindowTest {
 protected:
  /// The Compare screen with a small scenario and a measured trace that is `factor` times slower
  /// than predicted.
  CompareScreen& compare_with_measured(std::int64_t factor) {
    set_small_scenario();
    const QString path = folder.filePath("measured.pftrace");
    write_measured(*workbench->simulation(), factor, path);
    workbench->open({path});
    EXPECT_TRUE(settles());
    trigger("compare.again");
    EXPECT_TRUE(settles());
    return screen<CompareScreen>("compare");
  }
  /// One step per factor, as many times as long as predicted.
  static void write_measured(const Simulation& simulation, const std::vector<std::int64_t>& factors,
                             const QString& path) {
    Timeline predicted = timeline_of(simulation.step.graph, simulation.step.times);
    predicted.origin = TimelineOrigin::kMeasured;
    std::vector<Timeline> steps(factors.size(), predicted);
    for (std::size_t i = 0; i < steps.size(); ++i)
      for (TimelineSpan& span : steps[i].spans)
        span.start = span.start * factors[i], span.end = span.end * factors[i];
    write_file(path.toStdString(), to_pftrace(join_steps(steps)));
  }
  static void write_measured(const Simulation& simulation, std::int64_t factor,
                             const QString& path) {
    write_measured(simulation, std::vector{factor}, path);
  }
  void search_plans() {
    set_small_scenario();
    auto& plans = screen<PlansScreen>("plans");
    plans.start();
    ASSERT_TRUE(settles());
    ASSERT_NE(plans.result(), nullptr);
  }
  void trigger(const char* action) { window->actions().find(action)->trigger(); }

  const QTemporaryDir folder;
};

TEST_F(ScreensTest, SearchesPlansAndAppliesOne) {
  ASSERT_NO_FATAL_FAILURE(search_plans());
  EXPECT_TRUE(QSize(1024, 640).expandedTo(window->minimumSizeHint()) == QSize(1024, 640));
  auto& plans = screen<PlansScreen>("plans");
  ASSERT_FALSE(plans.result()->plans.empty());
  EXPECT_EQ(plans.table().rowCount(), static_cast<int>(plans.result()->plans.size()));
  plans.table().setCurrentCell(plans.table().rowCount() - 1, 0);
  trigger("plans.take-over");
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario().strategy, plans.result()->plans.back().plan.strategy);
  EXPECT_EQ(workbench->simulation()->evaluation.step_time,
            plans.result()->plans.back().evaluation.step_time);
}

// Commands for this program, flags or files for other frameworks; the text shown is the text
// copied.
TEST_F(ScreensTest, ExportsAPlanToOtherPrograms) {
  ASSERT_NO_FATAL_FAILURE(search_plans());
  auto& plans = screen<PlansScreen>("plans");
  const Plan& best = plans.result()->plans.front().plan;
  EXPECT_TRUE(plans.hand_over().text().contains("meshwright simulate"));
  for (int t = 0; t < kLaunchTargetCount; ++t) {
    const auto target = static_cast<LaunchTarget>(t);
    plans.hand_over().targets().setCurrentIndex(t + 1);
    EXPECT_EQ(plans.hand_over().targets().currentText().toStdString(), name_of(target));
    EXPECT_EQ(plans.hand_over().text().toStdString(), launch_text(target, best).text);
    trigger("plans.copy");
    EXPECT_EQ(QApplication::clipboard()->text(), plans.hand_over().text());
  }
}

TEST_F(ScreensTest, DiscardsACanceledSearch) {
  auto& plans = screen<PlansScreen>("plans");
  plans.start();
  plans.cancel();
  ASSERT_TRUE(settles());
  EXPECT_EQ(plans.result(), nullptr);
  EXPECT_TRUE(plans.is_settled());
}

TEST_F(ScreensTest, AppliesASweepCellToTheScenario) {
  set_small_scenario();
  auto& sweep = screen<SweepScreen>("sweep");
  ASSERT_TRUE(settles());
  const HeatMapContent& content = sweep.map().content();
  ASSERT_EQ(content.rows[content.chosen_row], "2");
  ASSERT_EQ(content.columns[content.chosen_column], "4");
  EXPECT_NEAR(*content.values[static_cast<std::size_t>(content.chosen_row)]
                             [static_cast<std::size_t>(content.chosen_column)],
              workbench->simulation()->figures.bubble_of_period, 1e-12);
  // Row 0 is p = 1, column 1 is m = 2.
  QTest::mouseClick(&sweep.map(), Qt::LeftButton, {}, sweep.map().cell_at(0, 1).center().toPoint());
  EXPECT_EQ(workbench->scenario().scenario().strategy.degrees.pipeline, 1);
  EXPECT_EQ(microbatches(workbench->scenario().scenario()), 2);
  workbench->scenario().undo_stack().undo();
  EXPECT_EQ(workbench->scenario().scenario().strategy.degrees.pipeline, 2);
}

TEST_F(ScreensTest, ComparisonOfATimelineWithItselfShowsNoError) {
  set_small_scenario();
  const auto simulation = workbench->simulation();
  const QString predicted = folder.filePath("p.pftrace"), measured = folder.filePath("m.pftrace");
  write_file(predicted.toStdString(),
             to_pftrace(timeline_of(simulation->step.graph, simulation->step.times)));
  write_measured(*simulation, 1, measured);
  auto& compare = screen<CompareScreen>("compare");
  compare.open(measured, predicted);  // the wrong way round: it says itself which is which
  ASSERT_TRUE(settles());
  ASSERT_TRUE(compare.comparison().report.has_value())
      << compare.comparison().problem.toStdString();
  EXPECT_EQ(step_error(*compare.comparison().report), 0.0);
  EXPECT_EQ(compare.comparison().predicted->origin, TimelineOrigin::kPredicted);
}

// Everything was measured twice as slow, on the same clock: at the end of the slider the last
// predicted slice ends where the last measured one does; halfway it ends at 1.5 times its predicted
// end.
TEST_F(ScreensTest, TheMorphSliderMovesPredictedSlicesToMeasuredOnes) {
  auto& compare = compare_with_measured(2);
  ASSERT_TRUE(compare.comparison().pairs);
  const Nanoseconds end = compare.comparison().predicted->end;
  QSlider& slider = compare.morph_slider();
  slider.setFocus();
  QTest::keyClick(&slider, Qt::Key_End);
  ASSERT_TRUE(settles());
  EXPECT_EQ(slider.value(), slider.maximum());
  EXPECT_NEAR(static_cast<double>(compare.view().tracks()->end.value),
              2.0 * static_cast<double>(end.value), 2);
  slider.setValue(slider.maximum() / 2);
  ASSERT_TRUE(settles());
  EXPECT_NEAR(static_cast<double>(compare.view().tracks()->end.value),
              1.5 * static_cast<double>(end.value), 2);
  trigger("compare.morph");  // back, as a picture in motion
  ASSERT_TRUE(QTest::qWaitFor([&] { return slider.value() == 0; }, kPatienceMs));
  ASSERT_TRUE(settles());
  EXPECT_EQ(compare.view().tracks()->end, end);
}

// p = 4, m = 8: 3 / 11 for GPipe and 1F1B, 3 / 27 for ZB-H1.
TEST_F(ScreensTest, StacksSchedulesOnOneTimeAxisForALecture) {
  trigger("example.textbook");
  ASSERT_TRUE(settles());
  trigger("view.lecture");
  ASSERT_TRUE(settles());
  auto& lecture = screen<LectureScreen>("lecture");
  ASSERT_TRUE(settles());
  EXPECT_TRUE(lecture.stack().title_of(0).contains("gpipe"));
  EXPECT_TRUE(lecture.stack().title_of(0).contains("bubble " + percent_text(3.0 / 11)));
  EXPECT_TRUE(lecture.stack().title_of(1).contains("1f1b"));
  EXPECT_TRUE(lecture.stack().title_of(1).contains("bubble " + percent_text(3.0 / 11)));
  EXPECT_TRUE(lecture.stack().title_of(2).contains("zb-h1"));
  EXPECT_TRUE(lecture.stack().title_of(2).contains("bubble " + percent_text(3.0 / 27)));
  trigger("view.lecture");
  EXPECT_EQ(window->current_screen()->traits().name, "explore");
}

TEST_F(ScreensTest, PlaysALectureWithSpaceAndArrows) {
  trigger("example.textbook");
  trigger("view.lecture");
  ASSERT_TRUE(settles());
  auto& lecture = screen<LectureScreen>("lecture");
  ScheduleStack& stack = lecture.stack();
  EXPECT_TRUE(stack.hasFocus());
  EXPECT_FALSE(stack.head());
  QTest::keyClick(&stack, Qt::Key_Right);
  ASSERT_TRUE(stack.head());
  EXPECT_EQ(*stack.head(), stack.end() / 40);
  QTest::keyClick(&stack, Qt::Key_Space);
  EXPECT_TRUE(lecture.is_playing());
  EXPECT_TRUE(QTest::qWaitFor([&] { return *stack.head() > stack.end() / 40; }));
  QTest::keyClick(&stack, Qt::Key_Space);
  EXPECT_FALSE(lecture.is_playing());
  QTest::keyClick(&stack, Qt::Key_End);
  EXPECT_FALSE(stack.head());
}

TEST_F(ScreensTest, ShowsAMeasuredTraceByItselfUntilAComparisonIsRequested) {
  set_small_scenario();
  const QString path = folder.filePath("measured.pftrace");
  write_measured(*workbench->simulation(), 2, path);
  workbench->open({path});
  ASSERT_TRUE(settles());
  const auto& compare = screen<CompareScreen>("compare");
  EXPECT_FALSE(compare.view().state().content.is_comparison());
  EXPECT_EQ(compare.view().tracks()->origin, TimelineOrigin::kMeasured);
  trigger("compare.again");
  ASSERT_TRUE(settles());
  EXPECT_TRUE(compare.view().state().content.is_comparison());
}

TEST_F(ScreensTest, ComparesTwoTracesThatAreOpenedTogetherInEitherOrder) {
  set_small_scenario();
  const QString predicted = folder.filePath("predicted.pftrace");
  const QString measured = folder.filePath("measured.pftrace");
  const Simulation& s = *workbench->simulation();
  write_file(predicted.toStdString(), to_pftrace(timeline_of(s.step.graph, s.step.times)));
  write_measured(s, 2, measured);
  for (const QStringList& files : {QStringList{predicted, measured}, {measured, predicted}}) {
    workbench->open(files);
    ASSERT_TRUE(settles());
    const auto& compare = screen<CompareScreen>("compare");
    ASSERT_TRUE(compare.comparison().report);
    EXPECT_NEAR(*step_error(*compare.comparison().report), -0.5, 1e-3);
    EXPECT_EQ(compare.comparison().measured_path, measured.toStdString());
  }
}

TEST_F(ScreensTest, AsksForPredictedAndMeasuredTraceInFieldsOfTheirOwn) {
  set_small_scenario();
  const Simulation& s = *workbench->simulation();
  const QString predicted = folder.filePath("p.pftrace"), measured = folder.filePath("m.pftrace");
  write_file(predicted.toStdString(), to_pftrace(timeline_of(s.step.graph, s.step.times)));
  write_measured(s, 2, measured);
  trigger("compare.open");
  auto* dialog = open_dialog<CompareDialog>();
  ASSERT_NE(dialog, nullptr);
  dialog->findChild<QLineEdit*>("compare.predicted")->setText(predicted);
  auto* accept = dialog->findChild<QDialogButtonBox*>()->buttons().front();
  for (QAbstractButton* button : dialog->findChild<QDialogButtonBox*>()->buttons())
    if (button->text().contains("Compare")) accept = button;
  EXPECT_FALSE(accept->isEnabled());
  dialog->findChild<QLineEdit*>("compare.measured")->setText(measured);
  accept->click();
  ASSERT_TRUE(settles());
  EXPECT_TRUE(screen<CompareScreen>("compare").comparison().report);
}

TEST_F(ScreensTest, OpensAFolderOfTracesAsTheRanksOfOneRun) {
  for (const int rank : {0, 1, 2})
    write_file(folder.filePath(QString("rank%1.json").arg(rank)).toStdString(),
               R"({"traceEvents":[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,)"
               R"("ts":1,"dur":5}]})");
  workbench->open({folder.path()});
  ASSERT_TRUE(settles());
  const auto tracks = screen<CompareScreen>("compare").view().tracks();
  ASSERT_NE(tracks, nullptr);
  ASSERT_EQ(tracks->rows.size(), 3U);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(tracks->rows[static_cast<std::size_t>(rank)].rank, rank);
}

// Steps that take 9, 2, 4 and 3 times as long as predicted; the first is a warm-up, so 3 is the
// median. Any other can be picked, and only that step is shown.
TEST_F(ScreensTest, ComparesTheMedianStepOrTheOneThatIsPicked) {
  set_small_scenario();
  const Simulation& s = *workbench->simulation();
  const QString predicted = folder.filePath("p.pftrace"), measured = folder.filePath("m.pftrace");
  write_file(predicted.toStdString(), to_pftrace(timeline_of(s.step.graph, s.step.times)));
  write_measured(s, {9, 2, 4, 3}, measured);
  auto& compare = screen<CompareScreen>("compare");
  compare.open(predicted, measured);
  ASSERT_TRUE(settles());
  QComboBox& step = compare.step_box();
  ASSERT_EQ(step.count(), 4);
  EXPECT_EQ(step.currentIndex(), 3);
  EXPECT_FALSE(step.isHidden());
  const auto end = [&] { return static_cast<double>(compare.comparison().measured->end.value); };
  const auto once = static_cast<double>(compare.comparison().predicted->end.value);
  EXPECT_NEAR(end() / once, 3, 1e-3);
  EXPECT_EQ(compare.comparison().report->counted_steps, 3);
  EXPECT_TRUE(QSize(1024, 640).expandedTo(window->minimumSizeHint()) == QSize(1024, 640));
  step.setCurrentIndex(1);
  ASSERT_TRUE(settles());
  EXPECT_NEAR(end() / once, 2, 1e-3);
  EXPECT_EQ(compare.view().state().content.measured, compare.comparison().measured);
  EXPECT_EQ(compare.comparison().pairs->measured_alone, 0U);
  trigger("compare.again");  // all steps are still there
  ASSERT_TRUE(settles());
  EXPECT_EQ(step.count(), 4);
}

// The first stage is slowed down after the comparison: comparing again gives another error and
// still shows the previous one.
TEST_F(ScreensTest, ComparesATraceWithTheScenarioAgain) {
  auto& compare = compare_with_measured(2);
  ASSERT_TRUE(compare.comparison().report);
  EXPECT_NEAR(*step_error(*compare.comparison().report), -0.5, 1e-3);
  workbench->scenario().edit("slower", {}, [](Scenario& s) { s.what_if.slowness.assign(2, 2.0); });
  ASSERT_TRUE(settles());
  trigger("compare.again");
  ASSERT_TRUE(settles());
  EXPECT_NEAR(*compare.error_before(), -0.5, 1e-3);
  EXPECT_GT(*step_error(*compare.comparison().report), -0.3);
}

// As a user would: the action asks for a file name, and the file contains the order.
TEST_F(ScreensTest, SavesTheScheduleToTheChosenFile) {
  set_small_scenario();
  const QString path = folder.filePath("order.csv");
  QTimer::singleShot(0, window.get(), [&] {
    auto* dialog = qobject_cast<QFileDialog*>(QApplication::activeModalWidget());
    ASSERT_NE(dialog, nullptr);
    dialog->findChild<QLineEdit*>("fileNameEdit")->setText(path);
    QMetaObject::invokeMethod(dialog, "accept");
  });
  trigger("explore.save-schedule");
  ASSERT_TRUE(settles());
  EXPECT_EQ(read_file(path.toStdString()), write_schedule_csv(workbench->simulation()->schedule));
}

// Contour lines work for values of any magnitude, not only for fractions.
TEST_F(ScreensTest, DrawsContourLinesInTheSweep) {
  set_small_scenario();
  auto& sweep = screen<SweepScreen>("sweep");
  ASSERT_TRUE(settles());
  trigger("sweep.figure");
  trigger("sweep.figure");  // the step's time
  EXPECT_EQ(sweep.map().content().levels.size(), 5u);
}

TEST_F(ScreensTest, ExcludesCalibrationOutliers) {
  Calibration calibration;
  KernelCurve curve{{.kind = KernelKind::kGemm}, {}};
  for (std::int64_t n = 64; curve.points.size() < 9; n += n / 2)
    curve.points.push_back({.m = n,
                            .n = n,
                            .k = n,
                            .flops = Flops(2.0 * static_cast<double>(n * n * n)),
                            .memory_traffic = Bytes(12 * n * n),
                            .time = Seconds(2e-9 * static_cast<double>(n * n * n))});
  curve.points[4].time = curve.points[4].time * 5.0;
  calibration.kernels.push_back(curve);
  const QString path = folder.filePath("x.calib.json");
  write_file(path.toStdString(), to_json(calibration));
  workbench->open({path});
  ASSERT_TRUE(settles());
  auto& shown = screen<CalibrationScreen>("calibration");
  EXPECT_EQ(shown.chart().series().points.size(), 9u);
  shown.outlier_box().click();
  ASSERT_TRUE(settles());
  EXPECT_LT(shown.chart().series().points.size(), 9u);
}

// The table shows the visible slices; its current row and the selected slice stay in sync.
TEST_F(ScreensTest, SynchronizesTableAndTimeline) {
  set_small_scenario();
  auto& explore = screen<ExploreScreen>("explore");
  trigger("explore.table");
  ASSERT_TRUE(settles());
  SliceTable& table = explore.table();
  ASSERT_TRUE(table.isVisible());
  const int all = table.slices().rowCount();
  ASSERT_GT(all, 16);  // F and B of 4 micro-batches on 2 devices, and the optimizer's
  explore.view().setFocus();
  explore.view().selection().select_slice(table.slices().slice_of(5));
  EXPECT_EQ(table.selectionModel()->currentIndex().row(), 5);
  table.setFocus();
  ASSERT_TRUE(QTest::qWaitFor([&] { return table.hasFocus(); }, kPatienceMs));
  QTest::keyClick(&table, Qt::Key_Down);
  EXPECT_EQ(explore.view().selection().slice(), table.slices().slice_of(6));
  QTest::keyClick(&table, Qt::Key_C, Qt::ControlModifier);
  const QStringList lines = QApplication::clipboard()->text().trimmed().split('\n');
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[1].split('\t').size(), TimelineTableModel::kColumnCount);
  explore.view().setFocus();
  explore.view().viewport().show_range(Nanoseconds(0), explore.view().tracks()->end / 4);
  ASSERT_TRUE(settles());
  EXPECT_LT(table.slices().rowCount(), all);
  trigger("explore.table");
  EXPECT_FALSE(table.isVisible());
}

// 1f1b with two stages on rank 0: F0 F1 B0 F2 B1 F3 B2 B3. F2 dropped at the start of B0 moves
// before it, which is valid and keeps one more micro-batch in flight; B0 before F0 would be a
// deadlock.
TEST_F(ScreensTest, MovesAPassByDraggingAndUndoesIt) {
  set_small_scenario();
  TimelineView& view = screen<ExploreScreen>("explore").view();
  ASSERT_TRUE(settles());
  constexpr int kLeft = 132, kInFirstRow = 54 + 10;
  const auto slice = [&](const char* name) {
    const std::size_t found = slices_named(*view.tracks(), name).front();
    return std::pair(view.tracks()->start_of(found), view.tracks()->end_of(found));
  };
  const auto x_of = [&](Nanoseconds time) {
    return kLeft + static_cast<int>(view.viewport().window().pixel_of(time));
  };
  const auto drag = [&](const char* name, Nanoseconds to) {
    const auto [start, end] = slice(name);
    const QPoint from(x_of(start + (end - start) / 2), kInFirstRow), there(x_of(to), kInFirstRow);
    QTest::mouseClick(&view, Qt::LeftButton, {}, from);
    QTest::mousePress(&view, Qt::LeftButton, {}, from);
    QTest::mouseMove(&view, from + QPoint(from.x() < there.x() ? 15 : -15, 0));
    QTest::mouseMove(&view, there);
    QTest::mouseRelease(&view, Qt::LeftButton, {}, there);
  };
  const Scenario before = workbench->scenario().scenario();
  drag("r0.compute.s0.B0", Nanoseconds(0));
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario(), before);
  drag("r0.compute.s0.F2", slice("r0.compute.s0.B0").first);
  ASSERT_TRUE(settles());
  ASSERT_FALSE(workbench->scenario().scenario().orders.empty());
  EXPECT_TRUE(workbench->simulation()->is_sound());
  EXPECT_LT(slice("r0.compute.s0.F2").first, slice("r0.compute.s0.B0").first);
  const std::string csv = write_schedule_csv(workbench->simulation()->schedule);
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "0F0,0F1,0F2,0B0,0B1,0F3,0B2,0B3");
  trigger("edit.undo");
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario(), before);
}

TEST_F(ScreensTest, ShowsRunningJobsInTheStatusBar) {
  ASSERT_TRUE(settles());
  auto* progress = window->findChild<JobProgress*>();
  ASSERT_NE(progress, nullptr);
  EXPECT_FALSE(progress->isVisible());
  QSemaphore gate;
  workbench->jobs().start<int>(
      {"count", "", true}, window.get(),
      [&](const JobContext& context) {
        context.report(3, 4);
        gate.acquire();
        return 0;
      },
      [](int) {});
  auto* bar = progress->findChild<QProgressBar*>();
  EXPECT_TRUE(QTest::qWaitFor(
      [&] { return progress->isVisible() && bar->maximum() > 0 && bar->value() > 0; }, 10'000));
  EXPECT_EQ(4 * bar->value(), 3 * bar->maximum());
  gate.release();
  ASSERT_TRUE(settles());
  EXPECT_FALSE(progress->isVisible());
}

TEST_F(ScreensTest, ReportsRepairsOfATrace) {
  auto& compare = screen<CompareScreen>("compare");
  const QString path = folder.filePath("overlapping.json");
  write_file(path.toStdString(), R"({"traceEvents": [
    {"ph": "X", "name": "a", "cat": "kernel", "pid": 0, "tid": 7, "ts": 0, "dur": 10},
    {"ph": "X", "name": "b", "cat": "kernel", "pid": 0, "tid": 7, "ts": 5, "dur": 10},
    {"ph": "X", "name": "c", "cat": "kernel", "pid": 0, "tid": 7, "dur": 10}]})");
  workbench->open({path});
  ASSERT_TRUE(settles());
  const auto pages = compare.findChildren<QTextBrowser*>();
  EXPECT_TRUE(std::any_of(pages.begin(), pages.end(), [](const QTextBrowser* page) {
    return page->toPlainText().contains("invalid events dropped: 1");
  }));
}

TEST_F(ScreensTest, MeasuresAndStopsARun) {
  if (ChildProgram::find().isEmpty()) GTEST_SKIP() << "the program meshwright is not built";
  set_small_scenario();
  auto& run = screen<RunScreen>("run");
  QSignalSpy ended(&run, &RunScreen::ended);
  run.start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !ended.isEmpty(); }, 60'000));
  EXPECT_EQ(ended.front().front().toInt(), 0);
  trigger("run.compare");
  ASSERT_TRUE(settles());
  EXPECT_TRUE(screen<CompareScreen>("compare").comparison().report.has_value());

  ended.clear();
  run.start();
  run.cancel();  // before the program was started
  ASSERT_TRUE(settles());
  EXPECT_TRUE(run.is_settled());
  EXPECT_TRUE(ended.isEmpty());
}

TEST(CalibrationProgress, ParsesProgressLines) {
  EXPECT_EQ(calibration_progress_from_line("  4 %  collectives of 2 ranks"),
            (CalibrationProgress{4, "collectives of 2 ranks"}));
  EXPECT_EQ(calibration_progress_from_line("100 %  x"), (CalibrationProgress{100, "x"}));
  EXPECT_FALSE(calibration_progress_from_line("error: disk: is full"));
}

TEST_F(ScreensTest, StopsACalibration) {
  if (ChildProgram::find().isEmpty()) GTEST_SKIP() << "the program meshwright is not built";
  set_small_scenario();
  const Scenario before = workbench->scenario().scenario();
  auto& calibration = screen<CalibrationScreen>("calibration");
  QSignalSpy ended(workbench.get(), &Workbench::calibrated);
  trigger("calibration.measure");
  EXPECT_FALSE(calibration.is_settled());
  trigger("calibration.stop");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !ended.isEmpty(); }, kPatienceMs));
  EXPECT_FALSE(ended.front().front().toBool());
  EXPECT_FALSE(calibration.is_measuring());
  EXPECT_EQ(workbench->scenario().scenario(), before);
}

// One click calibrates this machine, applies the result to the scenario and compares again.
TEST_F(ScreensTest, RecalibrationComparesBeforeAndAfter) {
  if (ChildProgram::find().isEmpty()) GTEST_SKIP() << "the program meshwright is not built";
  auto& compare = compare_with_measured(2);
  screen<CalibrationScreen>("calibration").set_quick(true);
  trigger("compare.recalibrate");
  ASSERT_TRUE(QTest::qWaitFor([&] { return compare.error_before().has_value(); }, 240'000));
  ASSERT_TRUE(settles());
  EXPECT_EQ(window->current_screen()->traits().name, "compare");
  EXPECT_NEAR(*compare.error_before(), -0.5, 1e-3);
  EXPECT_FALSE(workbench->scenario().scenario().calibration_file.empty());
  ASSERT_TRUE(compare.comparison().report);
  EXPECT_NE(*step_error(*compare.comparison().report), *compare.error_before());
  EXPECT_TRUE(screen<CalibrationScreen>("calibration").calibration()->machine);
}

}  // namespace
}  // namespace meshwright::gui
