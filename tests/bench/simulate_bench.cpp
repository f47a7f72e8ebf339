/// The engine on 1F1B pipelines. Prints time, tasks per second and `bound_ms`, the memory bound:
/// the time of a plain copy on this machine of the bytes that the pass must read and write once.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

/// 16 stages: 32 m passes and 60 m sends and receives, 92 tasks per micro-batch; 1,087 give
/// 100,004.
constexpr int kStages = 16, kMicrobatches = 1087;

GraphBuilder one_forward_one_backward(int stages, int microbatches, const MessageCost& message) {
  return pipeline_graph(schedule_of("1f1b", {.devices = stages, .microbatches = microbatches}),
                        uniform_times(stages, Ticks(1'000'000), Ticks(1'200'000), Ticks(800'000)),
                        message);
}
const MessageCost kMessage{
    .bytes = Bytes(1'000'000), .occupancy = Ticks(100'000), .latency = Ticks(50'000)};

/// Bytes per second that a copy reads and writes, best of five.
double copy_rate() {
  static const double rate = [] {
    constexpr std::size_t kSize = 64u << 20;
    std::vector<char> from(kSize, 1), to(kSize, 2);
    double best = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const auto start = std::chrono::steady_clock::now();
      std::memcpy(to.data(), from.data(), kSize);
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      best = std::max(best, 2.0 * static_cast<double>(kSize) / time.count());
    }
    return best;
  }();
  return rate;
}

void report(benchmark::State& state, const TaskGraph& graph, std::size_t bytes_per_task) {
  const auto tasks = static_cast<double>(graph.tasks.size());
  const double bytes = tasks * static_cast<double>(bytes_per_task) +
                       static_cast<double>(graph.dependencies.size() * sizeof(TaskId));
  state.counters["tasks"] = tasks;
  state.counters["tasks/s"] =
      benchmark::Counter(tasks, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bound_ms"] = 1e3 * bytes / copy_rate();
}

/// A task, its offset into the dependencies, and its two times.
constexpr std::size_t kLinearBytes = sizeof(Task) + sizeof(std::int32_t) + 2 * sizeof(Ticks);

void LinearPass(benchmark::State& state) {
  const GraphBuilder g =
      one_forward_one_backward(kStages, static_cast<int>(state.range(0)), kMessage);
  SimulatedTimes times;
  for (auto _ : state) {
    simulate(g.graph, g.prices, times);
    benchmark::DoNotOptimize(times.end.data());
  }
  report(state, g.graph, kLinearBytes);
}
BENCHMARK(LinearPass)->Arg(kMicrobatches)->Arg(100 * kMicrobatches)->Unit(benchmark::kMillisecond);

void Evaluate(benchmark::State& state) {
  const GraphBuilder g = one_forward_one_backward(kStages, kMicrobatches, kMessage);
  const SimulatedTimes times = simulate(g.graph, g.prices);
  JobFacts job;
  job.job_ranks = kStages;
  for (auto _ : state) benchmark::DoNotOptimize(evaluate(g.graph, g.prices, times, job));
  report(state, g.graph, kLinearBytes);
}
BENCHMARK(Evaluate)->Unit(benchmark::kMillisecond);

/// Nodes of 8 stages with a single port each, which messages in the same direction share.
void Contention(benchmark::State& state) {
  const GraphBuilder g = one_forward_one_backward(kStages, 128, kMessage);
  Cluster cluster;
  cluster.devices["device"].name = "device";
  NodeModel& node = cluster.nodes["node"];
  node.device = "device";
  node.device_count = 8;
  node.local.bandwidth = node.port_bandwidth = kMessage.bytes / to_seconds(kMessage.occupancy);
  node.ports = 1;
  cluster.groups = {{.node = "node", .count = kStages / 8}};
  const LinkNetwork network(cluster, kStages);
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate_with_contention(g.graph, g.prices, network));
  report(state, g.graph, kLinearBytes);
}
BENCHMARK(Contention)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace meshwright
