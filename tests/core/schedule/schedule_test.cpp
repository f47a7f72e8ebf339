#include "core/schedule/schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;

std::string message_of(std::string_view text) {
  const Diagnostic problem = diagnostics_of([&] { order_from_text(text); }).at(0);
  return problem.where + ": " + problem.what;
}

TEST(OrderText, ReadsBackWhatItWrites) {
  const std::string text = "0F0 12F345 (0F4;7B0) 3I1 3W1 (7B5;0F6)";
  const std::vector<Action> order = order_from_text(text);
  ASSERT_EQ(order.size(), 8u);
  EXPECT_EQ(order[1], (Action{StageId(12), Pass::kForward, MicrobatchId(345)}));
  EXPECT_EQ(order[2], (Action{StageId(0), Pass::kForward, MicrobatchId(4), true}));
  EXPECT_EQ(order[3], (Action{StageId(7), Pass::kBackward, MicrobatchId(0), false}));
  EXPECT_EQ(to_text(order), text);
  EXPECT_EQ(to_text(order_from_text("")), "");
  EXPECT_EQ(order_from_text("  0F0\n\t0B0 ").size(), 2u);
}

TEST(OrderText, NamesTheInvalidWord) {
  EXPECT_EQ(message_of("0F0 0X1"), "action 2: invalid action '0X1'");
  EXPECT_EQ(message_of("F0"), "action 1: invalid action 'F0'");
  EXPECT_EQ(message_of("0F"), "action 1: invalid action '0F'");
  EXPECT_EQ(message_of("-1F0"), "action 1: invalid action '-1F0'");
  EXPECT_EQ(message_of("0F99999999999"), "action 1: invalid action '0F99999999999'");
  EXPECT_EQ(message_of("(0F0;0B0"), "action 1: invalid pair of actions '(0F0;0B0'");
  EXPECT_EQ(message_of("("), "action 1: invalid pair of actions '('");
  EXPECT_EQ(message_of("(;)"), "action 1: invalid pair of actions '(;)'");
}

TEST(Placement, LoopPutsStageSOnDeviceSModP) {
  EXPECT_THAT(
      looped_placement(2, 2).device_of_stage,
      ElementsAre(PipelineRankId(0), PipelineRankId(1), PipelineRankId(0), PipelineRankId(1)));
}

TEST(Placement, WaveTurnsAtBothEnds) {
  EXPECT_THAT(wave_placement(2, 3).device_of_stage,
              ElementsAre(PipelineRankId(0), PipelineRankId(1), PipelineRankId(1),
                          PipelineRankId(0), PipelineRankId(0), PipelineRankId(1)));
}

TEST(Placement, BidirectionalHoldsEveryPartTwice) {
  const Placement both = bidirectional_placement(2);
  EXPECT_THAT(both.part_of_stage, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(both.device_of_stage, ElementsAre(PipelineRankId(0), PipelineRankId(1),
                                                PipelineRankId(1), PipelineRankId(0)));
  EXPECT_THAT(both.routes, ElementsAre(ElementsAre(StageId(0), StageId(1)),
                                       ElementsAre(StageId(2), StageId(3))));
}

TEST(PeakHeldMicrobatches, ReleasesAtTheEndOfTheWeightGradient) {
  Schedule schedule;
  schedule.orders = {order_from_text("0F0 0F1 0B0 0B1"), order_from_text("0F0 0I0 0F1 0W0 0I1 0W1"),
                     order_from_text("0F0 0B0 0F1 0B1")};
  EXPECT_THAT(peak_held_microbatches(schedule), ElementsAre(2, 2, 1));
}

}  // namespace
}  // namespace meshwright
