#include "core/schedule/within_limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/schedule/block_keys.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

StageTimes unequal_times(std::uint32_t seed, int stages) {
  std::mt19937 random(seed);
  StageTimes times = uniform_times(stages, Ticks(1), Ticks(1), Ticks(1));
  for (auto* passes : {&times.forward, &times.backward_input, &times.backward_weight})
    for (Ticks& time : *passes) time = Ticks(700 + static_cast<std::int64_t>(random() % 600));
  times.latency = Ticks(static_cast<std::int64_t>(random() % 200));
  return times;
}

ScheduleRequest v_request(int devices, int microbatches) {
  ScheduleRequest request;
  request.devices = devices;
  request.chunks = 2;
  request.microbatches = microbatches;
  return request;
}

TEST(ScheduleWithinLimits, IsValidWithinTheCapAndNeverLongerThanASeed) {
  for (std::uint32_t seed = 1; seed <= 6; ++seed)
    for (const int cap : {2, 3, 5, 8, 12}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", cap " << cap);
      const ScheduleRequest request = v_request(4, 10);
      const std::vector<Schedule> seeds{find_schedule_rule("zb-v")->generate(request),
                                        find_schedule_rule("v-half")->generate(request),
                                        find_schedule_rule("v-min")->generate(request)};
      const std::vector<int> caps(4, cap);
      const DispatchTask task = counted_task(seeds[0].placement, 10, unequal_times(seed, 8), caps);
      LimitedSearch search;
      search.dispatches = 60;
      search.seeds = seeds;
      const LimitedSchedule found = schedule_within_limits(task, search);
      EXPECT_THAT(check_schedule(found.schedule, caps), testing::IsEmpty());
      EXPECT_EQ(time_schedule(found.schedule, task.times).period, found.outcome.period);
      for (const Schedule& pattern : seeds)
        if (check_schedule(pattern, caps).empty()) {
          EXPECT_LE(found.outcome.period, time_schedule(pattern, task.times).period);
        }
    }
}

// One device in a V of two stages, F = I = W = 1 everywhere: 2 x 3 slots of work a micro-batch, and
// back to back F0 F1 I1 W1 I0 W0. Stage 1 lives for F1 I1 W1 = 3 slots; stage 0 from F0 to I0 is 4
// slots, and W0 makes 5: memory-time 8. With room for 2 the interval is at least max(6, 8 / 2) = 6.
TEST(BlockKeys, NeedsOfOneMicrobatchAreWorkAndMemoryTime) {
  const std::vector<int> caps{2};
  const DispatchTask task =
      counted_task(wave_placement(1, 2), 3, uniform_times(2, Ticks(1), Ticks(1), Ticks(1)), caps);
  const std::vector<DeviceNeed> needs = needs_of_one_microbatch(task);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0].work, Ticks(6));
  EXPECT_EQ(needs[0].memory_time, Ticks(8));
  EXPECT_EQ(least_interval(task), Ticks(6));
}

TEST(AutomaticV, KeepsThePurePatternWithoutTimesAndIsNeverLongerWithThem) {
  for (const char* name : {"zb-v", "v-half", "v-min"})
    for (std::uint32_t seed = 1; seed <= 3; ++seed) {
      ScheduleRequest request = v_request(4, 9);
      const auto generate = find_schedule_rule(name)->generate;
      const Schedule pure = generate(request);
      request.times = unequal_times(seed, 8);
      const Schedule timed = generate(request);
      EXPECT_EQ(timed.name, pure.name);
      EXPECT_THAT(check_schedule(timed), testing::IsEmpty());
      EXPECT_LE(time_schedule(timed, *request.times).period,
                time_schedule(pure, *request.times).period);
      const double own_cap = pure.name == "zb-v" ? 4 : pure.name == "v-half" ? 3 : 2;
      for (const double peak : peak_activations(timed)) EXPECT_LE(peak, own_cap);
    }
}

TEST(AutomaticV, KeepsTheGuaranteedPeakWithinACap) {
  for (const char* name : {"zb-v", "v-half", "v-min"})
    for (const int cap : {1, 2, 3, 6}) {
      ScheduleRequest request = v_request(4, 9);
      request.times = unequal_times(1, 8);
      request.activation_cap = cap;
      const ScheduleRule& rule = *find_schedule_rule(name);
      const std::vector<double> peaks = peak_activations(rule.generate(request));
      for (std::int32_t d = 0; d < 4; ++d) {
        EXPECT_LE(peaks[static_cast<std::size_t>(d)],
                  rule.peak_activations(request, PipelineRankId(d)));
        EXPECT_LE(rule.peak_activations(request, PipelineRankId(d)), cap);
      }
    }
}

}  // namespace
}  // namespace meshwright
