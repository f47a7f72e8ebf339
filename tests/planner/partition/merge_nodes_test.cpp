#include "planner/partition/merge_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.hpp"

namespace meshwright {
namespace {

using Groups = std::vector<std::int32_t>;

std::vector<Seconds> seconds(const std::vector<double>& values) {
  std::vector<Seconds> times;
  for (const double value : values) times.emplace_back(value);
  return times;
}

TEST(MergeNodes, LeavesSmallGraphsAsTheyAre) {
  EXPECT_EQ(merge_nodes(seconds({1, 2, 3}), {{0, 2}, {1, 2}}, 3), (Groups{0, 1, 2}));
}

/// Pairs 4 + 1, 1 + 2, 2 + 5: first 1 + 2 = 3; then 4 + 3 = 7 before 3 + 5 = 8.
TEST(MergeNodes, MergesTheSmallestPairsOfAChain) {
  const std::vector<PartitionEdge> chain = {{0, 1}, {1, 2}, {2, 3}};
  EXPECT_EQ(merge_nodes(seconds({4, 1, 2, 5}), chain, 3), (Groups{0, 1, 1, 2}));
  EXPECT_EQ(merge_nodes(seconds({4, 1, 2, 5}), chain, 2), (Groups{0, 0, 0, 1}));
}

/// 0 -> 1 -> 2 and 0 -> 2: merging 0 and 2 would make a cycle with 1, although they are the
/// smallest.
TEST(MergeNodes, DoesNotMergeAroundOtherNodes) {
  EXPECT_EQ(merge_nodes(seconds({1, 9, 1}), {{0, 1}, {1, 2}, {0, 2}}, 2), (Groups{0, 0, 1}));
}

/// Every node of the first three reads into all of the last three: no pair can be merged, so that
/// halves of equal time are.
TEST(MergeNodes, MergesConsecutiveNodesIfNoPairCanBeMerged) {
  std::vector<PartitionEdge> edges;
  for (std::int32_t source = 0; source < 3; ++source)
    for (std::int32_t target = 3; target < 6; ++target) edges.push_back({source, target});
  EXPECT_EQ(merge_nodes(seconds({1, 1, 1, 1, 1, 1}), edges, 2), (Groups{0, 0, 0, 1, 1, 1}));
}

/// Groups are few enough and numbered along all edges, which a cycle of groups would not allow.
TEST(MergeNodes, KeepsRandomGraphsAcyclic) {
  std::uint32_t state = 7;
  const auto below = [&](int n) {
    return static_cast<std::int32_t>(xorshift32(state) % static_cast<std::uint32_t>(n));
  };
  for (int round = 0; round < 500; ++round) {
    const int nodes = 2 + below(40);
    std::vector<Seconds> times;
    std::vector<PartitionEdge> edges;
    for (int v = 0; v < nodes; ++v) {
      times.emplace_back(below(10));
      for (int k = below(3); v > 0 && k > 0; --k) edges.push_back({below(v), v});
    }
    const auto most = static_cast<std::size_t>(1 + below(nodes));
    const Groups groups = merge_nodes(times, edges, most);
    EXPECT_LT(static_cast<std::size_t>(*std::ranges::max_element(groups)), most);
    for (const PartitionEdge& edge : edges)
      EXPECT_LE(groups[static_cast<std::size_t>(edge.source)],
                groups[static_cast<std::size_t>(edge.target)]);
  }
}

}  // namespace
}  // namespace meshwright
