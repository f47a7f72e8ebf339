#include "planner/synthesis/schedule_front.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

FrontRequest random_front(std::uint32_t seed, const Placement& placement, int microbatches) {
  const SynthesisRequest random = random_request(seed, placement, microbatches);
  FrontRequest request;
  request.placement = placement;
  request.microbatches = microbatches;
  request.times = random.times;
  request.dispatches_per_cap = 40;
  return request;
}

TEST(MemoryTimeFront, PointsAreSoundKeepTheirCapAndNeverRise) {
  for (const auto& placement :
       {looped_placement(4, 1), looped_placement(4, 2), wave_placement(4, 2), wave_placement(3, 4)})
    for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod})
      for (std::uint32_t seed = 1; seed <= 3; ++seed) {
        FrontRequest request = random_front(seed, placement, 6);
        request.objective = objective;
        request.caps = {4, 5, 6, 8, 12, 24};
        const std::vector<MemoryTimePoint> front = memory_time_front(request);
        ASSERT_EQ(front.size(), request.caps.size());
        for (std::size_t i = 0; i < front.size(); ++i) {
          const std::vector<int> caps(static_cast<std::size_t>(placement.devices), front[i].cap);
          EXPECT_THAT(check_schedule(front[i].schedule, caps), testing::IsEmpty());
          EXPECT_LE(front[i].lower_bound, front[i].value);
          if (i > 0) {
            EXPECT_LE(front[i].value, front[i - 1].value);
          }
        }
      }
}

TEST(MemoryTimeFront, IsNeverLongerThanZbVVHalfAndVMinAtTheirCaps) {
  ScheduleRequest zoo;
  zoo.devices = 4;
  zoo.chunks = 2;
  zoo.microbatches = 12;
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    FrontRequest request = random_front(seed, wave_placement(4, 2), 12);
    request.objective = ScheduleObjective::kPeriod;
    for (const char* name : {"v-min", "v-half", "zb-v"}) {
      const Schedule pattern = find_schedule_rule(name)->generate(zoo);
      const std::vector<int> held = peak_held_microbatches(pattern);
      request.caps = {*std::max_element(held.begin(), held.end())};
      EXPECT_LE(memory_time_front(request).front().value,
                time_schedule(pattern, request.times).period)
          << pattern.name << ", seed " << seed;
    }
  }
}

TEST(BestWithinCaps, KeepsTheCapOfEachDeviceAndIsNeverLongerThanSynthesis) {
  for (const auto& placement : {looped_placement(4, 2), wave_placement(4, 2)})
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      SynthesisRequest request = random_request(seed, placement, 8);
      request.caps = {6, 5, 4, 3};
      request.effort = 300'000;
      const SynthesizedSchedule made = best_within_caps(request);
      EXPECT_THAT(check_schedule(made.schedule, request.caps), testing::IsEmpty());
      EXPECT_EQ(made.value, time_schedule(made.schedule, request.times).makespan);
      EXPECT_LE(made.value, synthesize(request).value);
      EXPECT_LE(made.lower_bound, made.value);
    }
}

// Two devices and two micro-batches: no bound exceeds the smallest makespan or period of all
// schedules within the cap, and no point is below it. For the V placement, exhaustive search is
// feasible only at the smallest cap.
TEST(MemoryTimeFront, BoundsAndPointsHoldAgainstEverySchedule) {
  struct Shape {
    Placement placement;
    std::vector<int> caps;
  };
  const Shape shapes[] = {{looped_placement(2, 1), {1, 2}}, {wave_placement(2, 2), {2}}};
  for (std::uint32_t seed = 1; seed <= 8; ++seed)
    for (const bool is_period : {false, true}) {
      const Shape& shape = shapes[seed % 2];
      FrontRequest request = random_front(seed, shape.placement, 2);
      request.objective = is_period ? ScheduleObjective::kPeriod : ScheduleObjective::kMakespan;
      request.dispatches_per_cap = 200;
      request.caps = shape.caps;
      const ScheduleObjective objective = request.objective;
      for (const MemoryTimePoint& point : memory_time_front(request)) {
        SynthesisRequest all;
        all.placement = request.placement;
        all.microbatches = 2;
        all.times = request.times;
        all.caps.assign(2, point.cap);
        Ticks least = Ticks::max();
        for_every_schedule(all, [&](const Schedule& schedule) {
          const ScheduleTiming timing = time_schedule(schedule, request.times);
          least = std::min(
              least, objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period);
        });
        EXPECT_LE(point.lower_bound, least) << "seed " << seed << ", cap " << point.cap;
        EXPECT_GE(point.value, least) << "seed " << seed << ", cap " << point.cap;
      }
    }
}

/// Eight devices, 32 micro-batches, times that differ by up to 20 %.
FrontRequest eight_unequal_devices() {
  std::mt19937 random(7);
  FrontRequest request;
  request.placement = wave_placement(8, 2);
  request.microbatches = 32;
  request.times = uniform_times(16, Ticks(), Ticks(), Ticks());
  for (auto* passes :
       {&request.times.forward, &request.times.backward_input, &request.times.backward_weight})
    for (Ticks& time : *passes) time = Ticks(8'000 + static_cast<std::int64_t>(random() % 4'000));
  request.times.latency = Ticks(500);
  for (int cap = 2; cap <= 24; ++cap) request.caps.push_back(cap);
  return request;
}

/// Compares a named schedule, for equal times and for these times, with all caps that it respects.
void expect_no_longer_than(const Schedule& named, const std::vector<MemoryTimePoint>& front,
                           const FrontRequest& request) {
  const std::vector<int> held = peak_held_microbatches(named);
  const ScheduleTiming timing = time_schedule(named, request.times);
  const bool is_makespan = request.objective == ScheduleObjective::kMakespan;
  for (const MemoryTimePoint& point : front)
    if (point.cap >= *std::max_element(held.begin(), held.end())) {
      EXPECT_LE(point.value, is_makespan ? timing.makespan : timing.period)
          << named.name << " at " << point.cap;
    }
}

TEST(MemoryTimeFront, OfTwentyCapsIsNeverLongerThanTheZooAtItsCaps) {
  FrontRequest request = eight_unequal_devices();
  ScheduleRequest pure;
  pure.devices = 8;
  pure.chunks = 2;
  pure.microbatches = 32;
  ScheduleRequest timed = pure;
  timed.times = request.times;
  for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod}) {
    request.objective = objective;
    const std::vector<MemoryTimePoint> front = memory_time_front(request);
    ASSERT_GE(front.size(), 20u);
    for (const char* name : {"v-min", "v-half", "zb-v"}) {
      const auto generate = find_schedule_rule(name)->generate;
      expect_no_longer_than(generate(pure), front, request);
      expect_no_longer_than(generate(timed), front, request);
    }
    EXPECT_TRUE(is_proved_optimal(front.front()));  // one micro-batch at a time
    EXPECT_LE(gap_of(front.back()), 0.05);
  }
}

// Stage 0 holds three units and stage 3, on the same device of the V, one.
TEST(MemoryTimeFront, WeighsUnequalChunks) {
  FrontRequest request = random_front(2, wave_placement(2, 2), 6);
  request.held = {3, 2, 2, 1};
  request.caps = {4, 7, 12};
  for (const MemoryTimePoint& point : memory_time_front(request))
    for (const auto& order : point.schedule.orders) {
      int level = 0;
      for (const Action& a : order) {
        if (a.pass == Pass::kForward) level += request.held[a.stage.index()];
        if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardWeight)
          level -= request.held[a.stage.index()];
        EXPECT_LE(level, point.cap);
      }
    }
  request.caps = {3};
  EXPECT_EQ(problem_of(request), "cap 3 is too small for device 0: one micro-batch needs 4");
}

}  // namespace
}  // namespace meshwright
