/// Memory-time fronts: 23 memory caps on eight devices with two stages each, 32 micro-batches and
/// unequal times, with lower bounds; CPU time of one thread. Target: at most 1 s for 20 caps.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "planner/synthesis/schedule_front.hpp"

namespace meshwright {
namespace {

FrontRequest unequal_devices(const Placement& placement, ScheduleObjective objective) {
  constexpr int kMicrobatches = 32, kCaps = 23;
  std::mt19937 random(7);
  FrontRequest request;
  request.placement = placement;
  request.microbatches = kMicrobatches;
  request.objective = objective;
  const int stages = static_cast<int>(placement.device_of_stage.size());
  request.times = uniform_times(stages, Ticks(), Ticks(), Ticks());
  for (auto* passes :
       {&request.times.forward, &request.times.backward_input, &request.times.backward_weight})
    for (Ticks& time : *passes) time = Ticks(8'000 + static_cast<std::int64_t>(random() % 4'000));
  request.times.latency = Ticks(500);
  const int chunks = stages / placement.devices;
  for (int i = 0; i < kCaps; ++i) request.caps.push_back(chunks + i * chunks / 2);
  return request;
}

void draw_front(benchmark::State& state, const Placement& placement, ScheduleObjective objective) {
  const FrontRequest request = unequal_devices(placement, objective);
  double gaps = 0, worst = 0, proved = 0;
  for (auto _ : state) {
    gaps = worst = proved = 0;
    for (const MemoryTimePoint& point : memory_time_front(request)) {
      gaps += gap_of(point);
      worst = std::max(worst, gap_of(point));
      proved += is_proved_optimal(point) ? 1 : 0;
    }
  }
  const auto caps = static_cast<double>(request.caps.size());
  state.counters["caps"] = caps;
  state.counters["mean_gap_percent"] = 100 * gaps / caps;
  state.counters["worst_gap_percent"] = 100 * worst;
  state.counters["proved_optimal"] = proved;
}
BENCHMARK_CAPTURE(draw_front, v_makespan, wave_placement(8, 2), ScheduleObjective::kMakespan)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draw_front, v_period, wave_placement(8, 2), ScheduleObjective::kPeriod)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(draw_front, loop_makespan, looped_placement(8, 2), ScheduleObjective::kMakespan)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace meshwright
