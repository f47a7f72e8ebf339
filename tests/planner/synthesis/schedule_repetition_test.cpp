#include "planner/synthesis/schedule_repetition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

Schedule from_zoo(const char* name, int devices, int microbatches) {
  ScheduleRequest request;
  request.devices = devices;
  request.microbatches = microbatches;
  return find_schedule_rule(name)->generate(request);
}

/// Warm-up, alternating forward and backward, drain: the middle section is repeated.
TEST(SteadyRepetition, MakesOneForwardOneBackwardLonger) {
  const StageTimes times = uniform_times(3, Ticks(2), Ticks(2), Ticks(1));
  const std::optional<Schedule> longer = repeat_steadily(from_zoo("1f1b", 3, 6), times, 11);
  ASSERT_TRUE(longer.has_value());
  EXPECT_EQ(longer->orders, from_zoo("1f1b", 3, 11).orders);
}

TEST(SteadyRepetition, FindsNothingWhereNothingIsSteady) {
  // GPipe: no backward between two forwards of the first stage.
  EXPECT_EQ(
      repeat_steadily(from_zoo("gpipe", 2, 4), uniform_times(2, Ticks(2), Ticks(2), Ticks(1)), 9),
      std::nullopt);
}

TEST(SteadyRepetition, KeepsOrderAndCapsOfSynthesizedSchedules) {
  int repeated = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed)
    for (const auto& placement : {looped_placement(3, 1), wave_placement(2, 2)}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      SynthesisRequest request = random_request(seed, placement, 14);
      request.caps.assign(static_cast<std::size_t>(placement.devices), 6);
      request.effort = 200'000;
      const Schedule shorter = synthesize(request).schedule;
      const std::optional<Schedule> longer = repeat_steadily(shorter, request.times, 40);
      if (!longer) continue;
      ++repeated;
      EXPECT_EQ(longer->microbatch_count, 40);
      EXPECT_THAT(check_schedule(*longer, request.caps), testing::IsEmpty());
    }
  EXPECT_GE(repeated, 12);
}

TEST(Synthesis, IsNearTheBoundForThousandsOfMicrobatches) {
  for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod}) {
    SynthesisRequest request;
    request.placement = looped_placement(4, 1);
    request.microbatches = 4096;
    for (const int tenths : {9, 11, 10, 10}) {
      request.times.forward.push_back(table_time(10 * tenths));
      request.times.backward_input.push_back(table_time(20 * 10 - 10 * tenths));
      request.times.backward_weight.push_back(table_time(70));
    }
    request.times.latency = table_time(5);
    request.caps = {4, 4, 4, 4};
    request.objective = objective;
    request.effort = 1'000'000;
    const SynthesizedSchedule made = synthesize(request);
    EXPECT_THAT(check_schedule(made.schedule, request.caps), testing::IsEmpty());
    EXPECT_EQ(made.origin, "steady repetition");
    EXPECT_LE(gap_of(made), 0.001);
  }
}

}  // namespace
}  // namespace meshwright
