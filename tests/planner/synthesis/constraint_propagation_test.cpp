#include "planner/synthesis/constraint_propagation.hpp"

#include <gtest/gtest.h>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

/// Start and end of every operation, from the schedule's own timing.
void expect_inside_windows(const OperationNetwork& network, const Schedule& schedule,
                           const ScheduleTiming& timing, const ConstraintPropagation& windows) {
  for (std::size_t d = 0; d < schedule.orders.size(); ++d)
    for (std::size_t k = 0; k < schedule.orders[d].size(); ++k) {
      const Action& action = schedule.orders[d][k];
      const int pass = action.pass == Pass::kForward         ? 0
                       : action.pass == Pass::kBackwardInput ? 1
                                                             : 2;
      const auto o =
          static_cast<std::size_t>(network.id(pass, action.stage.value, action.microbatch.value));
      ASSERT_GE(timing.starts[d][k], windows.earliest_starts()[o]);
      ASSERT_LE(timing.ends[d][k], windows.latest_ends()[o]);
    }
}

void expect_sound(const Placement& placement, int microbatches, ScheduleObjective objective,
                  int seeds) {
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << placement.devices << " devices, seed " << seed);
    const SynthesisRequest request =
        random_request(static_cast<std::uint32_t>(seed), placement, microbatches);
    OperationNetwork network =
        make_operation_network(placement, microbatches, request.times, request.caps);
    Ticks offset;
    if (objective == ScheduleObjective::kPeriod) {
      const PeriodObjective period = aim_at_period(network);
      ASSERT_TRUE(period.is_exact);
      offset = period.offset;
    }
    const auto value_of = [&](const ScheduleTiming& timing) {
      return objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period;
    };
    Ticks least = Ticks::max();
    for_every_schedule(request, [&](const Schedule& schedule) {
      least = std::min(least, value_of(time_schedule(schedule, request.times)));
    });
    const Ticks target = least + table_time(seed % 3);
    ConstraintPropagation propagation(network);
    ASSERT_TRUE(propagation.could_meet(target + offset));
    for_every_schedule(request, [&](const Schedule& schedule) {
      const ScheduleTiming timing = time_schedule(schedule, request.times);
      if (value_of(timing) <= target) expect_inside_windows(network, schedule, timing, propagation);
    });
  }
}

TEST(ConstraintPropagation, KeepsEveryScheduleThatMeetsTheMakespan) {
  expect_sound(looped_placement(2, 1), 2, ScheduleObjective::kMakespan, 60);
  expect_sound(looped_placement(2, 1), 3, ScheduleObjective::kMakespan, 8);
  expect_sound(looped_placement(3, 1), 2, ScheduleObjective::kMakespan, 30);
  expect_sound(wave_placement(2, 2), 1, ScheduleObjective::kMakespan, 30);
}

TEST(ConstraintPropagation, KeepsEveryScheduleThatMeetsThePeriod) {
  expect_sound(looped_placement(2, 1), 2, ScheduleObjective::kPeriod, 60);
  expect_sound(looped_placement(2, 1), 3, ScheduleObjective::kPeriod, 8);
  expect_sound(looped_placement(3, 1), 2, ScheduleObjective::kPeriod, 30);
  expect_sound(wave_placement(2, 2), 1, ScheduleObjective::kPeriod, 30);
}

/// F, I, W of 1 on two stages, two micro-batches: 7 is possible (the last device starts at 1 and
/// has 6 units of work), 6 is not.
TEST(ConstraintPropagation, RefutesWhatTheWorkOfADeviceForbids) {
  const OperationNetwork network = make_operation_network(
      looped_placement(2, 1), 2, uniform_times(2, Ticks(1), Ticks(1), Ticks(1)), {});
  ConstraintPropagation propagation(network);
  EXPECT_TRUE(propagation.could_meet(Ticks(7)));
  EXPECT_FALSE(propagation.could_meet(Ticks(6)));
}

}  // namespace
}  // namespace meshwright
