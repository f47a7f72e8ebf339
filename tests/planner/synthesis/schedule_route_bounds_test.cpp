#include "planner/synthesis/schedule_route_bounds.hpp"

#include <gtest/gtest.h>

#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

ScheduleRequest request_of(int devices, int microbatches) {
  ScheduleRequest request;
  request.devices = devices;
  request.microbatches = microbatches;
  return request;
}

// Chimera, 2 devices, 2 micro-batches, one each way; F = 2, I = 1, W = 3 and a latency of 5. Work:
// 2 x 6 on each device. There and back on either route: 2 x (2 + 1) + 2 x 5 + 3 = 19.
TEST(RouteBounds, CountTheWayThereAndBack) {
  const Schedule schedule = find_schedule_rule("chimera")->generate(request_of(2, 2));
  StageTimes times = uniform_times(4, Ticks(2), Ticks(1), Ticks(3));
  times.latency = Ticks(5);
  EXPECT_EQ(busiest_device_work(schedule, times), Ticks(12));
  EXPECT_EQ(route_bound(schedule, times), Ticks(19));
}

// Seq1F1B, 2 devices, one micro-batch of 3 slices, all passes 1. The last stage does 3 F and 3 I
// between the arrival of slice 0 at 1 and its way back: 1 + 3 + 3 + 1 and W = 9 on the first stage;
// its own work is 9 as well, behind a head of 1 on the last stage: 10.
TEST(RouteBounds, CountAllSlicesOnTheLastStage) {
  ScheduleRequest request = request_of(2, 1);
  request.slices = 3;
  const Schedule schedule = find_schedule_rule("seq1f1b")->generate(request);
  EXPECT_EQ(route_bound(schedule, uniform_times(2, Ticks(1), Ticks(1), Ticks(1))), Ticks(10));
  StageTimes quick_weights = uniform_times(2, Ticks(1), Ticks(1), Ticks(0));
  EXPECT_EQ(route_bound(schedule, quick_weights), Ticks(8));  // 1 + 3 + 3 + 1 against 1 + 6
}

// Vocab-2 on 2 devices, one micro-batch: F 1 + 1, barrier 4, S 2, barrier 4, I 1 + 1, W 1 = 15.
TEST(RouteBounds, CountTheBarriersOfASplitOutputLayer) {
  StageTimes times = uniform_times(2, Ticks(1), Ticks(1), Ticks(1));
  times.output_scores.assign(2, Ticks(2));
  times.output_gradients.assign(2, Ticks(2));
  times.barrier = Ticks(4);
  const Schedule one = find_schedule_rule("vocab-1f1b")->generate(request_of(2, 1));
  EXPECT_EQ(route_bound(one, times), Ticks(15));
  const Schedule two = find_schedule_rule("vocab-1-1f1b")->generate(request_of(2, 1));
  EXPECT_EQ(route_bound(two, times), Ticks(21));  // T 2 and its barrier more
}

// A bound must not exceed the time of any schedule.
TEST(RouteBounds, AreBelowEverySchedule) {
  int schedules = 0;
  for (const ScheduleRule& rule : schedule_rules())
    for (int p = 1; p <= 4; ++p)
      for (int v = 1; v <= 2; ++v)
        for (int m = 1; m <= 8; ++m)
          for (int slices = 1; slices <= 2; ++slices) {
            ScheduleRequest request = request_of(p, m);
            request.chunks = v;
            request.slices = slices;
            if (rule.problem(request)) continue;
            const Schedule schedule = rule.generate(request);
            const auto stages = static_cast<int>(schedule.placement.device_of_stage.size());
            StageTimes times = uniform_times(stages, Ticks(3), Ticks(4), Ticks(2));
            for (int s = 0; s < stages; ++s)
              times.forward[static_cast<std::size_t>(s)] += Ticks(s * 7 % 5);
            times.latency = Ticks(m % 3);
            times.output_scores.assign(static_cast<std::size_t>(stages), Ticks(2));
            times.output_gradients.assign(static_cast<std::size_t>(stages), Ticks(1));
            times.barrier = Ticks(p);
            const ScheduleTiming timing = time_schedule(schedule, times);
            ASSERT_LE(route_bound(schedule, times), timing.makespan)
                << rule.name << " p=" << p << " v=" << v << " m=" << m << " slices=" << slices;
            ASSERT_LE(busiest_device_work(schedule, times), timing.period) << rule.name;
            ++schedules;
          }
  EXPECT_GT(schedules, 500);
}

}  // namespace
}  // namespace meshwright
