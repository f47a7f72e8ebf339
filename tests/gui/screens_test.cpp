/// What the screens beside Explore are for, done as a user would.
#include <QLabel>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>

#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "core/timeline_of.hpp"
#include "gui/actions.hpp"
#include "gui/compare_screen.hpp"
#include "gui/plans_screen.hpp"
#include "gui/run_screen.hpp"
#include "gui/sweep_screen.hpp"
#include "models/load.hpp"
#include "tests/gui/window_fixture.hpp"

namespace meshwright::gui {
namespace {

class ScreensTest : public WindowTest {
 protected:
  template <class ScreenKind>
  ScreenKind& screen(const char* name) {
    window->show_screen(name);
    return *qobject_cast<ScreenKind*>(window->find_screen(name));
  }
  /// Small enough to be searched and trained while a test waits.
  void set_small_scenario() {
    Scenario small = default_scenario();
    small.model = {.name = "small", .where = "small.json", .text = R"({
      "model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 64,
      "vocab_size": 256})"};
    small.cluster = find_cluster("cpu-laptop");
    small.strategy = {};
    small.strategy.degrees.pipeline = 2;
    small.strategy.dtype = Dtype::kFp32;
    small.strategy.global_batch = 4;
    small.strategy.sequence_length = 16;
    workbench->scenario().replace("small", small);
    ASSERT_TRUE(settles());
    ASSERT_TRUE(workbench->simulation()->is_sound())
        << workbench->simulation()->problems.front().what;
  }
};

TEST_F(ScreensTest, PlansAreSearchedAndTakenOver) {
  set_small_scenario();
  auto& plans = screen<PlansScreen>("plans");
  plans.start();
  ASSERT_TRUE(settles());
  ASSERT_NE(plans.result(), nullptr);
  ASSERT_FALSE(plans.result()->plans.empty());
  EXPECT_EQ(plans.table().rowCount(), static_cast<int>(plans.result()->plans.size()));
  plans.table().setCurrentCell(plans.table().rowCount() - 1, 0);
  window->actions().find("plans.take-over")->trigger();
  ASSERT_TRUE(settles());
  EXPECT_EQ(workbench->scenario().scenario().strategy, plans.result()->plans.back().plan.strategy);
  EXPECT_EQ(workbench->simulation()->evaluation.step_time,
            plans.result()->plans.back().evaluation.step_time);
}

TEST_F(ScreensTest, ACancelledSearchLeavesNothing) {
  auto& plans = screen<PlansScreen>("plans");
  plans.start();
  plans.cancel();
  ASSERT_TRUE(settles());
  EXPECT_EQ(plans.result(), nullptr);
  EXPECT_TRUE(plans.is_settled());
}

TEST_F(ScreensTest, ACellOfTheSweepBecomesTheScenario) {
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
  Timeline timeline = timeline_of(simulation->graph, simulation->times);
  const QTemporaryDir folder;
  const QString predicted = folder.filePath("p.pftrace"), measured = folder.filePath("m.pftrace");
  write_file(predicted.toStdString(), to_pftrace(timeline));
  timeline.origin = TimelineOrigin::kMeasured;
  write_file(measured.toStdString(), to_pftrace(timeline));
  auto& compare = screen<CompareScreen>("compare");
  compare.open(measured, predicted);  // the wrong way round: it says itself which is which
  ASSERT_TRUE(settles());
  ASSERT_TRUE(compare.comparison().report.has_value())
      << compare.comparison().problem.toStdString();
  EXPECT_EQ(step_error(*compare.comparison().report), 0.0);
  EXPECT_EQ(compare.comparison().predicted->origin, TimelineOrigin::kPredicted);
}

TEST_F(ScreensTest, ARunIsMeasuredAndStopped) {
  set_small_scenario();
  auto& run = screen<RunScreen>("run");
  QSignalSpy ended(&run, &RunScreen::ended);
  run.start();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !ended.isEmpty(); }, 60'000));
  EXPECT_EQ(ended.front().front().toInt(), 0);
  window->actions().find("run.compare")->trigger();
  ASSERT_TRUE(settles());
  EXPECT_TRUE(screen<CompareScreen>("compare").comparison().report.has_value());

  ended.clear();
  run.start();
  run.cancel();  // before the program was started
  ASSERT_TRUE(settles());
  EXPECT_TRUE(run.is_settled());
  EXPECT_TRUE(ended.isEmpty());
}

}  // namespace
}  // namespace meshwright::gui
