#include "planner/partition/down_sets.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

using Adjacency = std::vector<std::vector<std::int32_t>>;

/// Two chains of `length` items: (length + 1)^2 down-sets.
std::pair<Adjacency, Adjacency> two_chains(std::int32_t length) {
  const auto count = static_cast<std::size_t>(2 * length);
  Adjacency before(count), after(count);
  for (std::int32_t i = 0; i + 2 < 2 * length; ++i) {
    after[static_cast<std::size_t>(i)].push_back(i + 2);
    before[static_cast<std::size_t>(i + 2)].push_back(i);
  }
  return {before, after};
}

TEST(DownSets, OfTwoChainsAreAllPairsOfPrefixes) {
  const auto [before, after] = two_chains(40);
  const auto sets = enumerate_down_sets(before, after, 10'000);
  ASSERT_TRUE(sets.has_value());
  EXPECT_EQ(sets->size(), 41u * 41u);
}

TEST(DownSets, AreNumberedBySizeWithOneStepForEveryItemThatCanBeAdded) {
  const auto [before, after] = two_chains(5);
  const auto sets = enumerate_down_sets(before, after, 10'000);
  ASSERT_TRUE(sets.has_value());
  const auto full = static_cast<std::int32_t>(sets->size() - 1);
  for (std::int32_t set = 0; set <= full; ++set) {
    for (const auto& [item, next] : sets->steps(set)) {
      EXPECT_FALSE(sets->contains(set, item));
      EXPECT_TRUE(sets->contains(next, item));
      EXPECT_GT(next, set);
    }
    EXPECT_EQ(sets->steps(set).empty(), set == full);
  }
}

TEST(DownSets, AreNotEnumeratedBeyondTheLimit) {
  const auto [before, after] = two_chains(40);
  EXPECT_FALSE(enumerate_down_sets(before, after, 41 * 41 - 1).has_value());
  EXPECT_TRUE(enumerate_down_sets(before, after, 41 * 41).has_value());
}

}  // namespace
}  // namespace meshwright
