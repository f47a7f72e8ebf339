#include "core/schedule/dispatch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

/// A random task with times 1 to 9 and feasible limits; every other seed has chunks of unequal size
/// and releases part of the memory at the input gradient.
DispatchTask random_task(std::uint32_t seed, const Placement& placement, int microbatches) {
  std::mt19937 random(seed);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  const int stages = static_cast<int>(placement.device_of_stage.size());
  StageTimes times = uniform_times(stages, Ticks(1), Ticks(1), Ticks(1));
  for (auto* passes : {&times.forward, &times.backward_input, &times.backward_weight})
    for (Ticks& time : *passes) time = Ticks(draw(1, 9));
  times.latency = Ticks(draw(0, 4));
  times.link_occupancy = Ticks(draw(0, 2));
  DispatchTask task = counted_task(placement, microbatches, times, {});
  if (seed % 2 == 0)
    for (std::size_t s = 0; s < task.held.size(); ++s) {
      task.held[s] = draw(1, 6);
      task.freed_by_input[s] = draw(0, static_cast<int>(task.held[s]));
    }
  std::fill(task.limits.begin(), task.limits.end(), 0);
  for (std::size_t s = 0; s < task.held.size(); ++s)
    task.limits[placement.device_of_stage[s].index()] += task.held[s];
  for (std::int64_t& limit : task.limits) limit += draw(0, 8);
  return task;
}

/// Peak of each device, computed from the order and independently of the dispatcher.
std::vector<std::int64_t> peaks_of(const Schedule& schedule, const DispatchTask& task) {
  std::vector<std::int64_t> peaks;
  for (const auto& order : schedule.orders) {
    std::int64_t level = 0, peak = 0;
    for (const Action& a : order) {
      const std::size_t s = a.stage.index();
      if (a.pass == Pass::kForward) level += task.held[s];
      if (a.pass == Pass::kBackwardInput) level -= task.freed_by_input[s];
      if (a.pass == Pass::kBackwardWeight) level -= task.held[s] - task.freed_by_input[s];
      peak = std::max(peak, level);
    }
    EXPECT_EQ(level, 0);
    peaks.push_back(peak);
  }
  return peaks;
}

TEST(Dispatcher, KeepsLimitsAndNeverDeadlocksForAnyKeys) {
  const Placement placements[] = {looped_placement(4, 1), looped_placement(3, 3),
                                  wave_placement(4, 2), wave_placement(3, 4), wave_placement(1, 2)};
  for (std::uint32_t seed = 1; seed <= 40; ++seed)
    for (const Placement& placement : placements) {
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << ", " << placement.devices << " devices, "
                   << placement.device_of_stage.size() << " stages");
      const DispatchTask task = random_task(seed, placement, 7);
      Dispatcher dispatcher(task);
      std::mt19937 random(seed);
      DispatchRule rule;
      for (std::size_t o = 0; o < 3 * task.held.size() * 7; ++o)
        rule.keys.push_back(Ticks(static_cast<std::int64_t>(random() % 100)));
      rule.patience = 0.5 * static_cast<double>(seed % 3);
      if (seed % 4 > 0) rule.slack = Ticks(10 * (seed % 4 - 1));
      const std::optional<DispatchOutcome> outcome = dispatcher.run(rule);
      ASSERT_TRUE(outcome.has_value());
      const Schedule schedule = dispatcher.schedule();
      EXPECT_THAT(check_schedule(schedule), testing::IsEmpty());
      const std::vector<std::int64_t> peaks = peaks_of(schedule, task);
      for (std::size_t d = 0; d < peaks.size(); ++d) EXPECT_LE(peaks[d], task.limits[d]);
      const ScheduleTiming timing = time_schedule(schedule, task.times);
      EXPECT_EQ(outcome->makespan, timing.makespan);
      EXPECT_EQ(outcome->period, timing.period);
    }
}

/// Keys that are the starts of a schedule, without slack or patience, give that schedule where its
/// weight gradients run as early as they can: ZB-V at p = 4, m = 8 with unit times has period 48
/// slots of work and no bubble, and cannot get shorter.
TEST(Dispatcher, RepeatsAScheduleWhoseStartsAreTheKeys) {
  ScheduleRequest request;
  request.devices = 4;
  request.chunks = 2;
  request.microbatches = 8;
  const Schedule zb_v = find_schedule_rule("zb-v")->generate(request);
  const StageTimes times = uniform_times(8, Ticks(10), Ticks(10), Ticks(10));
  const ScheduleTiming timing = time_schedule(zb_v, times);
  const std::vector<int> caps(4, 8);
  const DispatchTask task = counted_task(zb_v.placement, 8, times, caps);
  Dispatcher dispatcher(task);
  DispatchRule rule;
  rule.keys.resize(3 * 8 * 8);
  rule.slack = Ticks(0);
  for (std::size_t d = 0; d < 4; ++d)
    for (std::size_t i = 0; i < zb_v.orders[d].size(); ++i) {
      const Action& a = zb_v.orders[d][i];
      const int pass = a.pass == Pass::kForward ? 0 : a.pass == Pass::kBackwardInput ? 1 : 2;
      rule.keys[dispatcher.operation(pass, a.stage.value, a.microbatch.value)] =
          timing.starts[d][i];
    }
  const std::optional<DispatchOutcome> outcome = dispatcher.run(rule);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->period, Ticks(8 * 6 * 10));
  EXPECT_EQ(dispatcher.run(rule, Ticks(8 * 6 * 10 - 1)), std::nullopt);
}

/// One device, two stages, two micro-batches, room for three of four: after F0(0) and F0(1) the
/// device holds two and F1(0) takes the last place. A third F0 would leave none for it.
TEST(Dispatcher, LeavesRoomForTheLaterVisitsOfWhatItHolds) {
  const StageTimes times = uniform_times(2, Ticks(1), Ticks(1), Ticks(1));
  const std::vector<int> caps{3};
  const DispatchTask task = counted_task(wave_placement(1, 2), 3, times, caps);
  Dispatcher dispatcher(task);
  DispatchRule rule;
  rule.keys.assign(3 * 2 * 3, Ticks(1));
  for (int j = 0; j < 3; ++j) rule.keys[dispatcher.operation(0, 0, j)] = Ticks(0);
  ASSERT_TRUE(dispatcher.run(rule).has_value());
  EXPECT_EQ(to_text(std::span(dispatcher.schedule().orders[0]).first(3)), "0F0 0F1 1F0");
}

}  // namespace
}  // namespace meshwright
