#include "planner/search/held_activations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace meshwright {
namespace {

using testing::ElementsAre;

Schedule one_rank(int stages, const std::string& order) {
  Schedule schedule;
  schedule.placement = looped_placement(1, stages);
  schedule.orders = {order_from_text(order)};
  return schedule;
}

std::vector<int> whole(const HeldActivations& held) {
  std::vector<int> counts;
  for (const HeldActivations::OfStage& stage : held.of_stage) counts.push_back(stage.whole);
  return counts;
}

TEST(HeldActivations, AreThoseOfEachStageAtThePeakOfTheRank) {
  const Schedule schedule = one_rank(2, "0F0 0F1 1F0 1B0 1F1 1B1 0B0 0B1");
  const std::vector<HeldActivations> moments = held_at_peaks(schedule);
  ASSERT_EQ(moments.size(), 1U);
  EXPECT_THAT(whole(moments[0]), ElementsAre(2, 1));
  const std::vector<SavedBytes> saved = {{Bytes(10), Bytes(10)}, {Bytes(3), Bytes(3)}};
  EXPECT_THAT(bytes_of(moments[0], schedule.placement, saved), ElementsAre(Bytes(23)));
}

TEST(HeldActivations, OfSplitBackwardPassesHaveFourMoments) {
  // Whole: 1 2 1 2 1 1 0; between I and W: 0 0 1 1 2 1 ...
  const Schedule schedule = one_rank(1, "0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2");
  const std::vector<HeldActivations> moments = held_at_peaks(schedule);
  ASSERT_EQ(moments.size(), 4U);
  const auto counts = [&](std::size_t i) {
    const HeldActivations::OfStage& stage = moments[i].of_stage.front();
    return std::vector<int>{stage.whole, stage.to_weight};
  };
  EXPECT_THAT(counts(0), ElementsAre(2, 1)) << "three at once, first after F2";
  EXPECT_THAT(counts(1), ElementsAre(1, 2)) << "three at once, two of them after I";
  EXPECT_THAT(counts(2), ElementsAre(2, 0));
  EXPECT_THAT(counts(3), ElementsAre(1, 2));
  const std::vector<SavedBytes> saved = {{Bytes(10), Bytes(15)}};
  EXPECT_THAT(most_bytes_of(moments, schedule.placement, saved), ElementsAre(Bytes(40)));
}

TEST(HeldActivations, ThatMayNotBeHeldCountAsTheLargest) {
  HeldActivations held{.of_stage = {{2, 0}, {1, 0}}, .of_any = {-1}};
  const Placement placement = looped_placement(1, 2);
  const std::vector<SavedBytes> saved = {{Bytes(10), Bytes(10), Bytes(100)},
                                         {Bytes(3), Bytes(3), Bytes(100)}};
  EXPECT_THAT(bytes_of(held, placement, saved), ElementsAre(Bytes(13)));
  held.of_any = {1};
  EXPECT_THAT(bytes_of(held, placement, saved), ElementsAre(Bytes(226)))
      << "one more of the smaller stage, and what the micro-batches of each stage share";
}

}  // namespace
}  // namespace meshwright
