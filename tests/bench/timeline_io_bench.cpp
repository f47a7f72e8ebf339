/// Writing and reading timelines of simulated 1F1B pipelines. Prints time, bytes per span
/// (including flows and memory counters) and `bound_ms`, the time of a plain copy of the bytes.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "core/formats/chrome_json.hpp"
#include "core/formats/pftrace.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

/// 16 stages: 92 tasks per micro-batch; 10,870 give a million spans. Odd picoseconds, as in real
/// prices.
const Timeline& million_spans() {
  static const Timeline timeline = [] {
    const GraphBuilder g = pipeline_graph(
        schedule_of("1f1b", {.devices = 16, .microbatches = 10'870}),
        uniform_times(16, Ticks(1'000'000'123), Ticks(1'200'000'457), Ticks(800'000'789)),
        {.bytes = Bytes(1'000'000), .occupancy = Ticks(100'000'011), .latency = Ticks(50'000'001)});
    return timeline_of(g.graph, simulate(g.graph, g.prices));
  }();
  return timeline;
}

void report(benchmark::State& state, const std::string& bytes) {
  std::string copy(bytes.size(), '\0');
  const auto start = std::chrono::steady_clock::now();
  copy.assign(bytes);
  benchmark::DoNotOptimize(copy.data());
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const auto spans = static_cast<double>(million_spans().spans.size());
  state.counters["spans"] = spans;
  state.counters["bytes/span"] = static_cast<double>(bytes.size()) / spans;
  state.counters["bound_ms"] = 1e3 * time.count();
}

void write(benchmark::State& state, std::string (*to_bytes)(const Timeline&)) {
  const Timeline& timeline = million_spans();
  std::string bytes;
  for (auto _ : state) bytes = to_bytes(timeline);
  report(state, bytes);
}

void WritePftrace(benchmark::State& state) { write(state, to_pftrace); }
BENCHMARK(WritePftrace)->Unit(benchmark::kMillisecond);

void ReadPftrace(benchmark::State& state) {
  const std::string bytes = to_pftrace(million_spans());
  for (auto _ : state) benchmark::DoNotOptimize(timeline_from_pftrace(bytes, "bench"));
  report(state, bytes);
}
BENCHMARK(ReadPftrace)->Unit(benchmark::kMillisecond);

void WriteChromeJson(benchmark::State& state) { write(state, to_chrome_json); }
BENCHMARK(WriteChromeJson)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace meshwright
