#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/schedule_csv.hpp"
#include "core/schedule/timing.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Schedule vocabulary_schedule(std::string_view name, int devices, int microbatches,
                             const StageTimes& times) {
  ScheduleRequest request;
  request.devices = devices;
  request.microbatches = microbatches;
  request.times = times;
  return find_schedule_rule(name)->generate(request);
}

/// F = S = T = I = W = 1: a whole backward lasts 2.
StageTimes unit_times(int stages) {
  StageTimes times = uniform_times(stages, Ticks(1), Ticks(1), Ticks(1));
  times.output_scores = times.output_gradients = times.forward;
  return times;
}

// Two devices, three micro-batches, F = 1, B = 2, gaps of 1: blocks of 5. The last forward of
// micro-batch 0 ends at 3. Device 0 has its gaps at 1, 6, 11 (after F) and 4, 9, 14 (after B): S0
// at 4, T0 at 11; its first B is at 12. Device 1: gaps at 3, 8 and 11, 16; S0 at 3, T0 at 11; first
// B at 9. Packed to the left:
//
//   time     0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17
//   device 0 F0 .  S0 F1 .  S1 F2 T0 B0 B0 S2 T1 .  B1 B1 T2 B2 B2
//   device 1 .  F0 S0 .  F1 S1 B0 B0 T0 F2 S2 B1 B1 T1 B2 B2 T2 .
TEST(VocabularyParallelism, OneBarrierMatchesTheHandDrawnGrid) {
  const StageTimes times = unit_times(2);
  const Schedule schedule = vocabulary_schedule("vocab-1f1b", 2, 3, times);
  EXPECT_EQ(to_text(schedule.orders[0]), "0F0 0S0 0F1 0S1 0F2 0T0 0B0 0S2 0T1 0B1 0T2 0B2");
  EXPECT_EQ(to_text(schedule.orders[1]), "1F0 1S0 1F1 1S1 1B0 1T0 1F2 1S2 1B1 1T1 1B2 1T2");
  const ScheduleTiming timing = time_schedule(schedule, times);
  EXPECT_EQ(timing.makespan, Ticks(18));
  EXPECT_EQ(timing.period, Ticks(18));  // of device 0
  // 3 x 5 units of work on each device.
  EXPECT_DOUBLE_EQ(timing.makespan_bubble, 1 - 30.0 / 36);
}

// The same with two barriers: the first B of device 0 is at 17, behind S2 (14) and T1 (16).
TEST(VocabularyParallelism, TwoBarriersLetOneMoreForwardGoAhead) {
  const Schedule schedule = vocabulary_schedule("vocab-1-1f1b", 2, 3, unit_times(2));
  EXPECT_EQ(to_text(schedule.orders[0]), "0F0 0S0 0F1 0S1 0F2 0T0 0S2 0T1 0B0 0T2 0B1 0B2");
  EXPECT_EQ(to_text(schedule.orders[1]), "1F0 1S0 1F1 1S1 1T0 1F2 1S2 1B0 1T1 1B1 1T2 1B2");
}

// One micro-batch on two devices, barrier 3: F0 ends at 2; S may start at 5, T at 9, and under
// Vocab-1 the first backward at 13: 13 + 2 + 2 = 17. Vocab-2 needs no T before it: 9 + 2 + 2 = 13,
// and the T of device 1 starts after its B, at 11.
TEST(VocabularyParallelism, EveryBarrierCostsItsMessage) {
  StageTimes times = unit_times(2);
  times.barrier = Ticks(3);
  const Schedule two = vocabulary_schedule("vocab-1-1f1b", 2, 1, times);
  EXPECT_EQ(to_text(two.orders[1]), "1F0 1S0 1T0 1B0");
  EXPECT_EQ(time_schedule(two, times).makespan, Ticks(17));
  const Schedule one = vocabulary_schedule("vocab-1f1b", 2, 1, times);
  EXPECT_EQ(to_text(one.orders[1]), "1F0 1S0 1B0 1T0");
  EXPECT_EQ(time_schedule(one, times).makespan, Ticks(13));
}

// p, p + 1 and p + 2 on device 0, as in figure 10 of the paper.
TEST(VocabularyParallelism, HoldsOneMicrobatchMoreForEachBarrier) {
  const StageTimes times = unit_times(4);
  EXPECT_THAT(peak_held_microbatches(vocabulary_schedule("1f1b", 4, 16, times)),
              ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(peak_held_microbatches(vocabulary_schedule("vocab-1f1b", 4, 16, times)),
              ElementsAre(5, 4, 3, 2));
  EXPECT_THAT(peak_held_microbatches(vocabulary_schedule("vocab-1-1f1b", 4, 16, times)),
              ElementsAre(6, 5, 4, 3));
}

// The point of the paper: an output layer of 48 (in thirds) on the last of four equal stages of
// F 12 and B 24 makes a micro-batch last 84 there; split in four, each device works 36 + 12.
TEST(VocabularyParallelism, SplittingTheOutputLayerRemovesItsImbalance) {
  constexpr int kStages = 4, kMicrobatches = 32;
  StageTimes whole = uniform_times(kStages, Ticks(12), Ticks(12), Ticks(12));
  whole.forward.back() += Ticks(16);
  whole.backward_input.back() += Ticks(16);
  whole.backward_weight.back() += Ticks(16);
  StageTimes split = uniform_times(kStages, Ticks(12), Ticks(12), Ticks(12));
  split.output_scores.assign(kStages, Ticks(8));
  split.output_gradients.assign(kStages, Ticks(4));
  const Ticks on_last =
      time_schedule(vocabulary_schedule("1f1b", kStages, kMicrobatches, whole), whole).makespan;
  const Ticks on_all =
      time_schedule(vocabulary_schedule("vocab-1f1b", kStages, kMicrobatches, split), split)
          .makespan;
  // Work alone: 32 x 84 against 32 x 48.
  EXPECT_GE(on_last, Ticks(32 * 84));
  EXPECT_GE(on_all, Ticks(32 * 48));
  EXPECT_LE(on_all, Ticks(32 * 48 * 115 / 100));
}

TEST(VocabularyParallelism, OrdersRoundTripThroughText) {
  const Schedule schedule = vocabulary_schedule("vocab-1-1f1b", 3, 5, unit_times(3));
  for (const auto& order : schedule.orders) EXPECT_EQ(order_from_text(to_text(order)), order);
}

TEST(VocabularyParallelism, PyTorchsCsvCannotExpressIt) {
  const Schedule schedule = vocabulary_schedule("vocab-1f1b", 2, 2, unit_times(2));
  EXPECT_THAT(complaints_of([&] { write_schedule_csv(schedule); }),
              HasSubstr("not expressible in PyTorch's CSV"));
}

TEST(VocabularyParallelism, TheCheckerFindsAMissingShard) {
  Schedule schedule = vocabulary_schedule("vocab-1f1b", 2, 2, unit_times(2));
  auto& order = schedule.orders[0];
  order.erase(order.begin() + 1);  // 0S0
  EXPECT_THAT(check_schedule(schedule),
              ElementsAre("device 0: missing 0S0 (the output layer is sharded)"));
}

TEST(VocabularyParallelism, TheCheckerRejectsUnrequestedShards) {
  Schedule schedule = vocabulary_schedule("vocab-1f1b", 1, 1, unit_times(1));
  ASSERT_THAT(check_schedule(schedule), IsEmpty());
  schedule.output_barriers = 0;
  EXPECT_THAT(check_schedule(schedule),
              ElementsAre("device 0: unexpected 0S0 (the output layer is not sharded)",
                          "device 0: unexpected 0T0 (the output layer is not sharded)"));
}

// Device 1 would go backward before device 0 has done its share, which waits for that backward.
TEST(VocabularyParallelism, TheCheckerFindsABarrierThatNeverCompletes) {
  Schedule schedule = vocabulary_schedule("vocab-1f1b", 2, 1, unit_times(2));
  schedule.orders[0] = order_from_text("0F0 0B0 0S0 0T0");
  EXPECT_THAT(
      check_schedule(schedule),
      ElementsAre("deadlock: device 0 is blocked at action 1 (0B0) and waits for 1B0, "
                  "action 2 of device 1; device 1 is blocked at action 2 (1B0) and waits for "
                  "0S0, "
                  "action 2 of device 0"));
}

// F = S = T = 1, B = 2. All devices run S and T of a micro-batch together; device 0 has e = 1 and
// runs F before B, device 1 has e = 0 and runs B before F:
//
//   time     0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15 16 17
//   device 0 F0 .  S0 T0 F1 .  .  S1 T1 F2 B0 B0 S2 T2 B1 B1 B2 B2
//   device 1 .  F0 S0 T0 B0 B0 F1 S1 T1 B1 B1 F2 S2 T2 B2 B2 .  .
TEST(Interlaced1F1B, MatchesTheHandDrawnGrid) {
  const StageTimes times = unit_times(2);
  const Schedule schedule = vocabulary_schedule("interlaced-1f1b", 2, 3, times);
  EXPECT_EQ(to_text(schedule.orders[0]), "0F0 0S0 0T0 0F1 0S1 0T1 0F2 0B0 0S2 0T2 0B1 0B2");
  EXPECT_EQ(to_text(schedule.orders[1]), "1F0 1S0 1T0 1B0 1F1 1S1 1T1 1B1 1F2 1S2 1T2 1B2");
  EXPECT_EQ(time_schedule(schedule, times).makespan, Ticks(18));
  EXPECT_THAT(check_schedule(schedule), IsEmpty());
}

// One micro-batch on two devices, barrier 3: F0 ends at 2, S runs at 5, T at 9 and ends at 10; the
// barrier after it ends at 13. Two micro-batches: the second F of device 0 waits for it too.
TEST(Interlaced1F1B, PassesWaitForTheBarrierOfTheOutputLayer) {
  StageTimes times = unit_times(2);
  times.barrier = Ticks(3);
  EXPECT_EQ(time_schedule(vocabulary_schedule("interlaced-1f1b", 2, 1, times), times).makespan,
            Ticks(17));
  const Schedule two = vocabulary_schedule("interlaced-1f1b", 2, 2, times);
  const ScheduleTiming timing = time_schedule(two, times);
  ASSERT_EQ(to_text(two.orders[0]), "0F0 0S0 0T0 0F1 0S1 0T1 0B0 0B1");
  EXPECT_EQ(timing.starts[0][3], Ticks(13));
}

// 1 + ceil(3 e / 2): 1.5 times 1F1B's micro-batches on the first of eight devices.
TEST(Interlaced1F1B, HoldsHalfAsManyMicrobatchesMore) {
  EXPECT_THAT(peak_held_microbatches(vocabulary_schedule("interlaced-1f1b", 8, 32, unit_times(8))),
              ElementsAre(12, 10, 9, 7, 6, 4, 3, 1));
}

TEST(VocabularyParallelism, EveryRuleDeclaresItsBarriers) {
  for (const ScheduleRule& rule : schedule_rules()) {
    ScheduleRequest request;
    request.devices = 4;
    request.microbatches = 8;
    if (rule.problem(request)) continue;
    EXPECT_EQ(rule.generate(request).output_barriers, rule.output_barriers) << rule.name;
  }
}

}  // namespace
}  // namespace meshwright
