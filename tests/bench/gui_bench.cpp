// From a slider move to pixels: simulate again, lay out, paint. Offscreen, one window.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QImage>
#include <QSettings>
#include <QStandardPaths>
#include <algorithm>
#include <vector>

#include "gui/screens/explore_screen.hpp"
#include "gui/session/simulation.hpp"
#include "gui/timeline_view/timeline_view.hpp"
#include "gui/window/main_window.hpp"

namespace meshwright::gui {
namespace {

/// 16 stages of GPT-3; every micro-batch is 92 tasks (16 F, 16 B, 15 messages each way, sent and
/// received).
Scenario scenario_of_tasks(std::int64_t tasks) {
  constexpr std::int64_t kTasksPerMicrobatch = 92;
  Scenario s = default_scenario();
  set_pipeline_degree(s, 16);
  set_microbatches(s, static_cast<int>(tasks / kTasksPerMicrobatch));
  return s;
}

/// Prints the actual number of tasks, and the p95 of all repeats with its bound: two frames at 60
/// Hz, for any number of tasks. A few warm-up moves precede the measured ones, since a user moves a
/// slider in a window that has already been drawn.
void SliderToPixels(benchmark::State& state) {
  JobLibrary library;
  TimelineView view;
  constexpr QSize kScreen(1920, 920);
  view.resize(kScreen);
  view.show();
  int moves = 0;
  const auto move = [&] {
    Scenario s = scenario_of_tasks(state.range(0));
    set_microbatches(s, microbatches(s) + moves++ % 8);
    QElapsedTimer timer;
    timer.start();
    const auto simulation = simulate_scenario(s, library);
    view.set_tracks(simulation->tracks);
    view.wait_for_painters();
    benchmark::DoNotOptimize(view.grab());
    const double milliseconds = static_cast<double>(timer.nsecsElapsed()) * 1e-6;
    state.counters["tasks"] = static_cast<double>(simulation->graph.tasks.size());
    return milliseconds;
  };
  constexpr int kMovesBefore = 8;
  for (int i = 0; i < kMovesBefore; ++i) move();
  std::vector<double> milliseconds;
  for (auto _ : state) milliseconds.push_back(move());
  std::sort(milliseconds.begin(), milliseconds.end());
  constexpr double kShare = 0.95;
  const auto last = static_cast<double>(milliseconds.size() - 1);
  state.counters["p50_ms"] = milliseconds[static_cast<std::size_t>(0.5 * last)];
  const double p95 = milliseconds[static_cast<std::size_t>(kShare * last)];
  constexpr double kBoundMs = 33;
  state.counters["p95_ms"] = p95;
  state.counters["bound_ms"] = kBoundMs;
  state.counters["p95/bound"] = p95 / kBoundMs;
}
BENCHMARK(SliderToPixels)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Iterations(40)
    ->Unit(benchmark::kMillisecond);

/// Startup time without loading the program, until the window shows the timeline of an example.
/// Prints the maximum of all repeats with its bound.
void FirstPaint(benchmark::State& state) {
  QSettings().clear();
  double largest = 0;
  for (auto _ : state) {
    QElapsedTimer timer;
    timer.start();
    Workbench workbench;
    MainWindow window(workbench);
    window.resize(1600, 1000);
    window.show_screen("explore");
    window.show();
    TimelineView& view = qobject_cast<ExploreScreen*>(window.find_screen("explore"))->view();
    while (view.tracks() == nullptr) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    view.wait_for_painters();
    benchmark::DoNotOptimize(window.grab());
    largest = std::max(largest, static_cast<double>(timer.nsecsElapsed()) * 1e-6);
  }
  constexpr double kBoundMs = 300;
  state.counters["max_ms"] = largest;
  state.counters["bound_ms"] = kBoundMs;
  state.counters["max/bound"] = largest / kBoundMs;
}
BENCHMARK(FirstPaint)->Iterations(10)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace meshwright::gui

int main(int argc, char** argv) {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);  // keeps the user's settings untouched
  QApplication application(argc, argv);
  QCoreApplication::setOrganizationName("meshwright-bench");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
