#include "core/schedule/pass_order.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/schedule/timing.hpp"
#include "tests/core/schedule/schedule_request.hpp"

namespace meshwright {
namespace {

StageTimes random_times(std::size_t stages, std::mt19937& random) {
  std::uniform_int_distribution<std::int64_t> ticks(1, 1000);
  StageTimes times;
  for (std::size_t s = 0; s < stages; ++s) {
    times.forward.emplace_back(ticks(random));
    times.backward_input.emplace_back(ticks(random));
    times.backward_weight.emplace_back(ticks(random));
  }
  return times;
}

// 1F1B on two devices, F = 1, B = 2: the second device waits 1, then runs 3 x 3; the last gradient
// takes 2 more on the first.
TEST(PassOrder, HasTheMakespanOfASmallPipeline) {
  const Schedule schedule = find_schedule_rule("1f1b")->generate(request_of(2, 1, 3));
  const std::optional<PassOrder> order = pass_order_of(schedule);
  ASSERT_TRUE(order);
  EXPECT_EQ(order->steps.size(), 12U);
  std::vector<Ticks> ends;
  EXPECT_EQ(makespan_of(*order, uniform_times(2, Ticks(1), Ticks(1), Ticks(1)), ends), Ticks(12));
}

TEST(PassOrder, TimesEveryScheduleAsItsTimerDoes) {
  std::mt19937 random(7);
  int timed = 0;
  for (const ScheduleRule& rule : schedule_rules())
    for (const int devices : {1, 2, 4, 5})
      for (const int chunks : {1, 2, 4})
        for (const int microbatches : {1, 4, 10}) {
          const ScheduleRequest request = request_of(devices, chunks, microbatches);
          if (rule.problem(request)) continue;
          const Schedule schedule = rule.generate(request);
          const std::optional<PassOrder> order = pass_order_of(schedule);
          if (!order) continue;
          StageTimes times = random_times(schedule.placement.device_of_stage.size(), random);
          times.latency = Ticks(std::uniform_int_distribution<int>(0, 20)(random));
          std::vector<Ticks> ends;
          ASSERT_EQ(makespan_of(*order, times, ends), time_schedule(schedule, times).makespan)
              << rule.name << " " << devices << " " << chunks << " " << microbatches;
          ++timed;
        }
  EXPECT_GT(timed, 200);
}

TEST(PassOrder, LeavesPairsAndShardedOutputLayersToTheTimer) {
  EXPECT_FALSE(pass_order_of(find_schedule_rule("dualpipev")->generate(request_of(2, 2, 8))));
  EXPECT_FALSE(pass_order_of(find_schedule_rule("vocab-1-1f1b")->generate(request_of(2, 1, 4))));
}

}  // namespace
}  // namespace meshwright
