// The timeline of the desktop program against its time limits: repainting at every zoom level,
// opening a large trace, statistics, pointer moves. `time/bound` must not exceed 1. Offscreen, 1920
// x 920 pixels, 64 ranks, two threads.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QMouseEvent>
#include <QThreadPool>
#include <algorithm>
#include <cmath>
#include <map>

#include "gui/timeline/painter.hpp"
#include "gui/timeline/trace_files.hpp"
#include "gui/timeline_view/timeline_view.hpp"
#include "tests/gui/timeline/random_tracks.hpp"

namespace meshwright::gui {
namespace {

constexpr int kWidth = 1920, kHeight = 920, kRanks = 64;

/// A time limit; measures wall-clock time from construction on.
class Bar {
 public:
  explicit Bar(double milliseconds) : milliseconds_(milliseconds) { timer_.start(); }
  /// Reports the limit, and the mean time of an iteration divided by it.
  void judge(benchmark::State& state) const {
    const double mean = static_cast<double>(timer_.nsecsElapsed()) * 1e-6 /
                        static_cast<double>(std::max<std::int64_t>(1, state.iterations()));
    state.counters["bound_ms"] = milliseconds_;
    state.counters["time/bound"] = mean / milliseconds_;
  }

 private:
  double milliseconds_;
  QElapsedTimer timer_;
};

/// Created once per size.
std::shared_ptr<const TimelineTracks> tracks_of(std::int64_t millions) {
  static std::map<std::int64_t, std::shared_ptr<const TimelineTracks>> made;
  auto& tracks = made[millions];
  if (tracks == nullptr) {
    made.erase(made.begin(), made.find(millions));  // one of them in memory at a time
    const auto per_row = static_cast<int>(millions * 1'000'000 / kRanks);
    tracks = std::make_shared<const TimelineTracks>(
        random_tracks(1, {.rows = kRanks, .slices_per_row = per_row, .longest_ns = 100'000}));
  }
  return made[millions];
}

TimelineScene scene_of(std::shared_ptr<const TimelineTracks> tracks) {
  TimelineScene scene;
  LaneOptions options;
  options.sizes.compute = 12;
  scene.arrangement = std::make_shared<const LaneArrangement>(arrange_lanes(*tracks, options));
  QFont font;
  font.setPixelSize(9);
  scene.font = std::make_shared<const LabelFont>(font);
  scene.height = kHeight;
  scene.style.colors = light_colors();
  scene.content.tracks = std::move(tracks);
  return scene;
}

/// Arguments: millions of slices, and how often the view has been halved: from all slices to about
/// a hundred.
void repaint(benchmark::State& state) {
  TimelineScene scene = scene_of(tracks_of(state.range(0)));
  const Nanoseconds end = scene.content.tracks->end;
  const double part = std::ldexp(1.0, -static_cast<int>(state.range(1)));
  const auto span = static_cast<std::int64_t>(static_cast<double>(end.value) * part);
  const std::int64_t from = (end.value - span) / 3;
  scene.window = {Nanoseconds(from), Nanoseconds(from + span), kWidth};
  QThreadPool pool;
  pool.setMaxThreadCount(2);
  const Bar bar(state.range(0) <= 10 ? 20 : 33);
  for (auto _ : state) benchmark::DoNotOptimize(paint_scene(scene, &pool));
  bar.judge(state);
  state.counters["bytes_per_slice"] =
      static_cast<double>(slice_storage(*scene.content.tracks).value) /
      static_cast<double>(scene.content.tracks->slice_count());
}
BENCHMARK(repaint)
    ->ArgNames({"million", "halvings"})
    ->ArgsProduct({{10, 30}, benchmark::CreateDenseRange(0, 17, 1)})
    ->MinTime(0.25)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// Building the tracks: columns and coverage of a million slices.
void build_tracks(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        random_tracks(1, {.rows = kRanks, .slices_per_row = 1'000'000 / kRanks}));
}
BENCHMARK(build_tracks)->Unit(benchmark::kMillisecond);

void statistics_of_everything(benchmark::State& state) {
  const auto tracks = tracks_of(10);
  TimelineArea area{.rows = {}, .from = tracks->end / 7, .to = tracks->end / 7 * 6};
  for (std::size_t row = 0; row < tracks->rows.size(); ++row) area.rows.push_back(row);
  for (auto _ : state) benchmark::DoNotOptimize(area_statistics(*tracks, area));
}
BENCHMARK(statistics_of_everything)->Unit(benchmark::kMicrosecond);

void open_trace(benchmark::State& state, const std::string& text) {
  const Bar bar(3'000);
  for (auto _ : state) benchmark::DoNotOptimize(tracks_of_trace(text, "bench"));
  bar.judge(state);
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

/// A trace as written by a profiler: kernels on two streams, nested operators.
std::string kineto_of(int events) {
  std::string text = R"({"schemaVersion":1,"distributedInfo":{"rank":0},"traceEvents":[)";
  text += R"({"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7"}})";
  for (int i = 0; i < events; ++i) {
    const int kind = i % 4;
    text += fmt::format(
        R"(,
  {{
    "ph": "X", "cat": "{}", "name": "{}{}", "pid": {}, "tid": {},
    "ts": {}.{:03}, "dur": {}.250,
    "args": {{
      "External id": {}, "device": 0, "context": 1, "stream": 7, "correlation": {},
      "registers per thread": 32, "block": [128, 1, 1], "grid": [432, 1, 1]
    }}
  }})",
        kind == 0 ? "kernel" : "cpu_op", kind == 0 ? "void at::native::gemm_" : "aten::op_", i % 97,
        kind == 0 ? 0 : 4242, kind == 0 ? 7 : 1, i * 10, i % 1000, kind == 0 ? 30 : 8, i, i);
  }
  return text + "]}";
}

void open_a_kineto_trace(benchmark::State& state) { open_trace(state, kineto_of(1'000'000)); }
BENCHMARK(open_a_kineto_trace)->Unit(benchmark::kMillisecond)->Iterations(2)->UseRealTime();

/// A minimal trace as written by Chrome and our own exporter.
std::string chrome_trace_of(int events) {
  std::string text = R"({"traceEvents":[)";
  for (int i = 0; i < events; ++i)
    text += fmt::format(R"({}{{"name":"F{}","cat":"forward","ph":"X","ts":{}.{:03},"dur":20.5,)"
                        R"("pid":{},"tid":0}})",
                        i == 0 ? "" : ",", i % 512, i / 64 * 25, i % 1000, i % 64);
  return text + "]}";
}

void open_a_chrome_trace(benchmark::State& state) { open_trace(state, chrome_trace_of(1'000'000)); }
BENCHMARK(open_a_chrome_trace)->Unit(benchmark::kMillisecond)->Iterations(2)->UseRealTime();

/// On the GUI thread: the overlay, and the blit of an existing picture.
void move_the_pointer(benchmark::State& state) {
  TimelineView view;
  view.resize(kWidth, kHeight);
  view.show();
  view.set_tracks(tracks_of(10));
  view.wait_for_painters();
  QImage screen(view.size(), QImage::Format_RGB32);
  int x = 200;
  const Bar bar(1);
  for (auto _ : state) {
    x = x < 1800 ? x + 7 : 200;
    const QPoint at(x, 300);
    QMouseEvent event(QEvent::MouseMove, at, at, Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(&view, &event);
    QApplication::processEvents();
  }
  bar.judge(state);
}
BENCHMARK(move_the_pointer)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace meshwright::gui

int main(int argc, char** argv) {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
