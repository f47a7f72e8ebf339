/// The automatic scheduler with various stage times, caps and links.
#include "core/schedule/automatic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

/// Assigns micro-batches first in, first out, as defined by AutomaticOrders.
Schedule schedule_of(const PassOrders& passes, int microbatches) {
  const auto p = static_cast<int>(passes.size());
  Schedule schedule{.name = "automatic",
                    .microbatch_count = microbatches,
                    .placement = looped_placement(p, 1),
                    .route_of_microbatch = std::vector<int>(static_cast<std::size_t>(microbatches)),
                    .orders = std::vector<std::vector<Action>>(passes.size())};
  for (int d = 0; d < p; ++d) {
    std::array<int, 4> next{};
    for (const Pass pass : passes[static_cast<std::size_t>(d)])
      schedule.orders[static_cast<std::size_t>(d)].push_back(
          {StageId(d), pass, MicrobatchId(next[static_cast<std::size_t>(pass)]++)});
  }
  return schedule;
}

std::vector<AutomaticChoices> every_choice() {
  using HoldBack = AutomaticChoices::HoldBack;
  using Squeeze = AutomaticChoices::Squeeze;
  std::vector<AutomaticChoices> all;
  for (const bool crowd : {false, true})
    for (const HoldBack hold :
         {HoldBack::kNever, HoldBack::kWhenLate, HoldBack::kWhenVeryLate, HoldBack::kAlways})
      for (const Squeeze squeeze : {Squeeze::kNever, Squeeze::kWhenWaitedMost, Squeeze::kAlways})
        for (const bool ahead : {false, true}) all.push_back({crowd, hold, squeeze, ahead});
  return all;
}

/// Unequal stages, latency, sometimes busy links, caps from one micro-batch up.
AutomaticTask random_task(std::mt19937& random) {
  const auto from = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const int p = from(1, 7);
  AutomaticTask task;
  task.microbatches = from(1, 14);
  for (auto* times : {&task.times.forward, &task.times.backward_input, &task.times.backward_weight})
    for (int d = 0; d < p; ++d) times->emplace_back(from(1, 12));
  task.times.latency = Ticks(from(0, 6));
  task.times.link_occupancy = Ticks(from(0, 1) * from(0, 20));
  for (int d = 0; d < p; ++d) task.activation_caps.push_back(from(2, 4 * p) / 2.0);
  task.freed_by_input_gradient = from(0, 3) / 4.0;
  return task;
}

TEST(AutomaticSchedule, IsValidWithinItsCapsAndMatchesDirectTiming) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const AutomaticTask task = random_task(random);
    for (const AutomaticChoices& choices : every_choice()) {
      const AutomaticOrders orders = schedule_automatically(task, choices);
      const Schedule schedule = schedule_of(orders.passes, task.microbatches);
      ASSERT_THAT(check_schedule(schedule), testing::IsEmpty()) << i;
      const ScheduleTiming timing = time_schedule(schedule, task.times);
      ASSERT_EQ(orders.period, timing.period) << i;
      ASSERT_EQ(orders.makespan, timing.makespan) << i;
      const auto peaks = peak_activations(schedule, task.freed_by_input_gradient);
      for (std::size_t d = 0; d < peaks.size(); ++d)
        ASSERT_LE(peaks[d], task.activation_caps[d] + 1e-9) << i;
    }
  }
}

TEST(AutomaticSchedule, BestIsNoLongerThanAnyChoice) {
  std::mt19937 random(11);
  for (int i = 0; i < 50; ++i) {
    const AutomaticTask task = random_task(random);
    const Ticks best = time_schedule(best_automatic_schedule(task), task.times).period;
    for (const AutomaticChoices& choices : every_choice())
      ASSERT_LE(best, schedule_automatically(task, choices).period) << i;
  }
}

// p = 2, m = 2, F = I = W = 1, no latency, one micro-batch at a time: F0 F0' I0' I0 on the way,
// then the second; its forward on device 1 starts when W0 is done. Device 0: F0 at 0, I0 at 3, W0
// at 4, F1 at 5, I1 at 8, W1 at 9, end 10.
TEST(AutomaticSchedule, RunsOneAtATimeUnderACapOfOne) {
  AutomaticTask task;
  task.microbatches = 2;
  task.times = uniform_times(2, Ticks(1), Ticks(1), Ticks(1));
  task.activation_caps = {1, 1};
  const Schedule schedule = best_automatic_schedule(task);
  EXPECT_EQ(to_text(schedule.orders[0]), "0F0 0I0 0W0 0F1 0I1 0W1");
  EXPECT_EQ(time_schedule(schedule, task.times).period, Ticks(10));
}

}  // namespace
}  // namespace meshwright
