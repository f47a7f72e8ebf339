#include "core/plan/rank_groups.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

std::vector<int> members(Axis axis, CollectiveKind kind, int rank) {
  Strategy s;
  s.degrees = {.data = 2, .pipeline = 2, .context = 2, .tensor = 2, .expert = 4};
  Collective collective;
  collective.axis = axis;
  collective.kind = kind;
  const AxisGroups groups = axis_groups_of(s, RankId(rank));
  std::vector<int> values;
  for (const RankId member : members_of(groups, collective)) values.push_back(member.value);
  return values;
}

// Tensor ranks are 1 apart, context 2, data 4, positions 8: rank 13 is 8 + 4 + 0 + 1.
TEST(RankGroups, HoldTheRanksThatDifferInOneCoordinate) {
  EXPECT_EQ(members(Axis::kTensor, CollectiveKind::kAllReduce, 13), (std::vector<int>{12, 13}));
  EXPECT_EQ(members(Axis::kContext, CollectiveKind::kAllGather, 13), (std::vector<int>{13, 15}));
  EXPECT_TRUE(members(Axis::kData, CollectiveKind::kAllReduce, 13).empty());
}

// Experts are mapped to the 8 ranks of a pipeline rank separately; with expert-tensor-parallel size
// 1, 4 neighboring ranks hold all experts.
TEST(RankGroups, FoldExpertsIntoTheRanksOfAPosition) {
  EXPECT_EQ(members(Axis::kExpert, CollectiveKind::kAllToAll, 13),
            (std::vector<int>{12, 13, 14, 15}));
  EXPECT_EQ(members(Axis::kExpert, CollectiveKind::kAllReduce, 13), (std::vector<int>{13}));
}

}  // namespace
}  // namespace meshwright
