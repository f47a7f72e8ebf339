#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/schedule.hpp"

namespace meshwright {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Looped placement, with one device per order.
Schedule schedule_of(int microbatches, int chunks, const std::vector<std::string>& orders) {
  Schedule schedule;
  schedule.name = "by hand";
  schedule.microbatch_count = microbatches;
  schedule.placement = looped_placement(static_cast<int>(orders.size()), chunks);
  schedule.route_of_microbatch.assign(static_cast<std::size_t>(microbatches), 0);
  for (const auto& order : orders) schedule.orders.push_back(order_from_text(order));
  return schedule;
}

TEST(CheckSchedule, AcceptsTwoStagesOf1F1B) {
  EXPECT_THAT(check_schedule(schedule_of(2, 1, {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"})), IsEmpty());
  EXPECT_THAT(check_schedule(schedule_of(2, 1, {"0F0 0F1 0I0 0B1 0W0", "1F0 1B0 1F1 1I1 1W1"})),
              IsEmpty());
}

TEST(CheckSchedule, NamesAMissingPass) {
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0B0", "1F0"})),
              ElementsAre("device 1: missing backward (B, or I and W) of micro-batch 0 on stage "
                          "1"));
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0B0", "1F0 1B0"})),
              ElementsAre("device 0: missing forward (F) of micro-batch 0 on stage 0"));
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0I0"})),
              ElementsAre("device 0: missing weight gradient (W) of micro-batch 0 on stage 0, but "
                          "I is present"));
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0W0"})),
              ElementsAre("device 0: missing input gradient (I) of micro-batch 0 on stage 0, but "
                          "W is present"));
}

TEST(CheckSchedule, NamesADuplicate) {
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0F0 0B0"})),
              ElementsAre("device 0, action 1 (0F0): duplicate of action 0"));
}

TEST(CheckSchedule, NamesAWholeAndASplitBackward) {
  EXPECT_THAT(
      check_schedule(schedule_of(1, 1, {"0F0 0B0 0I0 0W0"})),
      ElementsAre("device 0: backward of micro-batch 0 on stage 0 occurs both as B and as I "
                  "and W"));
}

TEST(CheckSchedule, NamesTheWrongDevice) {
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0B0 1F0", "1B0"})),
              ElementsAre("device 0, action 2 (1F0): stage 1 belongs to device 1"));
}

TEST(CheckSchedule, NamesStagesAndMicrobatchesThatDoNotExist) {
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0B0 7F0"})),
              ElementsAre("device 0, action 2 (7F0): stage 7 is out of range: expected 0 to 0"));
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0B0 0F1"})),
              ElementsAre("device 0, action 2 (0F1): micro-batch 1 is out of range: expected 0 to "
                          "0"));
}

TEST(CheckSchedule, NamesAWeightGradientBeforeItsInputGradient) {
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0F0 0W0 0I0"})),
              ElementsAre("device 0: 0W0 (action 1) comes before 0I0 (action 2), which it depends "
                          "on"));
  EXPECT_THAT(check_schedule(schedule_of(1, 1, {"0B0 0F0"})),
              ElementsAre("device 0: 0B0 (action 0) comes before 0F0 (action 1), which it depends "
                          "on"));
}

// Device 0 waits for the backward of micro-batch 0 before it sends micro-batch 1; device 1 waits
// for micro-batch 1 first.
TEST(CheckSchedule, ReportsTheChainOfADeadlock) {
  EXPECT_THAT(
      check_schedule(schedule_of(2, 1, {"0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1"})),
      ElementsAre("deadlock: device 0 is blocked at action 1 (0B0) and waits for 1B0, "
                  "action 2 of device 1; device 1 is blocked at action 1 (1F1) and waits for "
                  "0F1, action 2 of device 0"));
}

TEST(CheckSchedule, LetsAPairWaitForTheInputsOfBoth) {
  // 1F1 needs 0F1, which comes only after 0B0 needs 1B0: the pair (1F1;1B0) can never start.
  EXPECT_THAT(check_schedule(schedule_of(2, 1, {"0F0 0B0 0F1 0B1", "1F0 (1F1;1B0) 1B1"})),
              Contains(HasSubstr("deadlock: device 0 is blocked at action 1 (0B0)")));
  EXPECT_THAT(check_schedule(schedule_of(2, 1, {"0F0 0F1 0B0 0B1", "1F0 (1F1;1B0) 1B1"})),
              IsEmpty());
}

TEST(CheckSchedule, RejectsPairsThatAreNotForwardAndBackward) {
  EXPECT_THAT(check_schedule(schedule_of(2, 1, {"(0F0;0F1) 0B0 0B1"})),
              ElementsAre("device 0, action 0: 0F0 overlaps 0F1; expected one forward and one "
                          "backward"));
  Schedule last = schedule_of(1, 1, {"0F0 0B0"});
  last.orders[0][1].overlaps_next = true;
  EXPECT_THAT(check_schedule(last), ElementsAre("device 0, action 1 (0B0): last action cannot "
                                                "overlap the next one"));
}

TEST(CheckSchedule, NamesTheForwardThatBreaksTheCap) {
  const Schedule gpipe = schedule_of(3, 1, {"0F0 0F1 0F2 0B0 0B1 0B2"});
  EXPECT_THAT(check_schedule(gpipe, std::vector{3}), IsEmpty());
  EXPECT_THAT(
      check_schedule(gpipe, std::vector{2}),
      ElementsAre("device 0, action 2 (0F2): holds 3 stage micro-batches, more than its cap "
                  "of 2"));
  EXPECT_THAT(check_schedule(gpipe, std::vector{2, 2}),
              ElementsAre("expected 1 caps (one per device), got 2"));
}

// The pair (0B0;0F1) holds micro-batches 0 and 1 at the same time, whichever is written first.
TEST(CheckSchedule, CountsBothPartsOfAPairAgainstTheCap) {
  const Schedule pair = schedule_of(2, 1, {"0F0 (0B0;0F1) 0B1"});
  EXPECT_THAT(check_schedule(pair, std::vector{2}), IsEmpty());
  EXPECT_THAT(
      check_schedule(pair, std::vector{1}),
      ElementsAre("device 0, action 1 (0B0): holds 2 stage micro-batches, more than its cap "
                  "of 1"));
  EXPECT_THAT(peak_held_microbatches(pair), ElementsAre(2));
}

TEST(CheckSchedule, KeepsSlicesInCausalOrder) {
  Schedule slices = schedule_of(2, 1, {"0F0 0F1 0B1 0B0"});
  slices.slices_per_microbatch = 2;
  EXPECT_THAT(check_schedule(slices), IsEmpty());
  slices.orders[0] = order_from_text("0F0 0F1 0B0 0B1");
  EXPECT_THAT(check_schedule(slices),
              ElementsAre("device 0: on stage 0 the backward of slice 0 comes before that of slice "
                          "1, which provides its gradients"));
}

TEST(CheckSchedule, ChecksTheShapeBeforeTheOrders) {
  Schedule broken = schedule_of(1, 1, {"0F0 0B0"});
  broken.route_of_microbatch = {3};
  EXPECT_THAT(check_schedule(broken),
              ElementsAre("micro-batch 0: route 3 is out of range (1 routes)"));
  broken.route_of_microbatch = {};
  EXPECT_THAT(check_schedule(broken), ElementsAre("expected routes for 1 micro-batches, got 0"));
  broken = schedule_of(1, 1, {"0F0 0B0"});
  broken.microbatch_count = 2'000'000'000;
  EXPECT_THAT(check_schedule(broken), Contains(HasSubstr("exceed the limit of 8388608")));
  broken = schedule_of(1, 1, {"0F0 0B0"});
  broken.placement.device_of_stage[0] = PipelineRankId(4);
  EXPECT_THAT(check_schedule(broken), ElementsAre("stage 0: device 4 is out of range (1 devices)"));
}

}  // namespace
}  // namespace meshwright
