#include "planner/synthesis/schedule_bounds.hpp"

#include <gtest/gtest.h>

#include "planner/synthesis/schedule_shaving.hpp"
#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

/// Two devices, two micro-batches; F, I and W last 1, no latency, no caps. By hand:
///   device 0  F0 F1 .  I0 W0 I1 W1      device 1 starts at 1 and has 6 units of work;
///   device 1  .  F0 I0 F1 I1 W0 W1      device 0 cannot have I1 done before 6 and W1 follows.
OperationNetwork two_by_two() {
  return make_operation_network(looped_placement(2, 1), 2,
                                uniform_times(2, Ticks(1), Ticks(1), Ticks(1)), {});
}

TEST(WorkBound, IsTheWorkOfTheBusiestDevice) {
  // 2 micro-batches x (F + I + W): 2 x 3 on device 0, 2 x (2 + 3 + 4) on device 1.
  StageTimes times = uniform_times(2, Ticks(1), Ticks(1), Ticks(1));
  times.forward[1] = Ticks(2);
  times.backward_input[1] = Ticks(3);
  times.backward_weight[1] = Ticks(4);
  EXPECT_EQ(work_bound(make_operation_network(looped_placement(2, 1), 2, times, {})), Ticks(18));
}

TEST(OneMachineBound, SeesHeadsAndTails) {
  // Device 1 may start at 1 (after F0 of stage 0) and works for 6: it ends at 7.
  EXPECT_EQ(one_machine_bound(two_by_two()), Ticks(7));
}

TEST(OneMachineBound, SeesMemoryAsPrecedence) {
  // One micro-batch at a time on both stages: 2 x (F F I I W) of 1 each on stage 0, the W of
  // stage 1 in the shadow: F0 waits for W0 of the micro-batch before. 2 x 5 = 10.
  const std::vector<int> caps{1, 1};
  EXPECT_EQ(one_machine_bound(make_operation_network(
                looped_placement(2, 1), 2, uniform_times(2, Ticks(1), Ticks(1), Ticks(1)), caps)),
            Ticks(10));
}

TEST(RefutationBound, ReturnsTheKnownValueWhenNothingBetterExists) {
  const OperationNetwork network = two_by_two();
  ConstraintPropagation propagation(network);
  EXPECT_EQ(refutation_bound(network, propagation, Ticks(6), Ticks(7), 1'000), Ticks(7));
}

TEST(ShavingBound, ReturnsTheKnownValueWhenNothingBetterExists) {
  const OperationNetwork network = two_by_two();
  ConstraintPropagation propagation(network);
  EXPECT_EQ(shaving_bound(network, propagation, Ticks(6), Ticks(7), 1'000), Ticks(7));
}

/// By shaving, from no bound at all and a value above the optimum.
Ticks shaved_bound(const SynthesisRequest& request, Ticks optimum) {
  OperationNetwork network =
      make_operation_network(request.placement, request.microbatches, request.times, request.caps);
  Ticks offset;
  if (request.objective == ScheduleObjective::kPeriod) {
    const PeriodObjective period = aim_at_period(network);
    if (!period.is_exact) return Ticks();
    offset = period.offset;
  }
  ConstraintPropagation propagation(network);
  const Ticks known = optimum + table_time(10) + offset;
  constexpr std::int64_t kUnlimited = 100'000'000;
  return shaving_bound(network, propagation, Ticks(), known, kUnlimited) - offset;
}

/// Least value over every schedule, for both objectives.
struct Optimum {
  Ticks makespan = Ticks::max(), period = Ticks::max();
};
Optimum optimum_by_trying_all(const SynthesisRequest& request) {
  Optimum least;
  for_every_schedule(request, [&](const Schedule& schedule) {
    const ScheduleTiming timing = time_schedule(schedule, request.times);
    least.makespan = std::min(least.makespan, timing.makespan);
    least.period = std::min(least.period, timing.period);
  });
  return least;
}

void expect_bounds_below_every_schedule(const Placement& placement, int microbatches, int seeds) {
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << placement.devices << " devices, seed " << seed);
    SynthesisRequest request =
        random_request(static_cast<std::uint32_t>(seed), placement, microbatches);
    const OperationNetwork network =
        make_operation_network(placement, microbatches, request.times, request.caps);
    const Optimum least = optimum_by_trying_all(request);
    ASSERT_NE(least.makespan, Ticks::max());
    EXPECT_LE(work_bound(network), least.period);
    EXPECT_LE(one_machine_bound(network), least.makespan);
    // From a value above the optimum, so that the halving has something to refute.
    EXPECT_LE(lower_bound_of(request, least.makespan + table_time(10)), least.makespan);
    EXPECT_LE(shaved_bound(request, least.makespan), least.makespan);
    request.objective = ScheduleObjective::kPeriod;
    EXPECT_LE(lower_bound_of(request, least.period + table_time(10)), least.period);
    EXPECT_LE(shaved_bound(request, least.period), least.period);
  }
}

TEST(ScheduleBounds, StayBelowEveryScheduleInALine) {
  expect_bounds_below_every_schedule(looped_placement(2, 1), 2, 60);
  expect_bounds_below_every_schedule(looped_placement(2, 1), 3, 12);
  expect_bounds_below_every_schedule(looped_placement(3, 1), 2, 40);
}

TEST(ScheduleBounds, StayBelowEveryScheduleInALoopAndInAV) {
  expect_bounds_below_every_schedule(looped_placement(2, 2), 1, 40);
  expect_bounds_below_every_schedule(wave_placement(2, 2), 1, 40);
  expect_bounds_below_every_schedule(wave_placement(3, 2), 1, 10);
  expect_bounds_below_every_schedule(looped_placement(1, 2), 2, 10);
}

// 16 unequal stages and 32 micro-batches: propagation alone leaves 0.15 %.
TEST(ShavingBound, ProvesAScheduleOptimalWherePropagationDoesNot) {
  constexpr std::size_t kRow = 55;
  const SynthesisRequest request = unequal_stages_request(
      read_case_rows("unequal_stages.csv").at(kRow), ScheduleObjective::kMakespan);
  const SynthesizedSchedule made = synthesize(request);
  EXPECT_TRUE(is_proved_optimal(made));
  EXPECT_LT(lower_bound_of(request, made.value), made.value);
}

}  // namespace
}  // namespace meshwright
