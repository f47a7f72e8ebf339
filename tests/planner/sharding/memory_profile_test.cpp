#include "planner/sharding/memory_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/sharding/least_memory.hpp"
#include "tests/planner/sharding/small_sharding_problems.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;

TEST(MemoryProfile, HasTheTimesThatCanBeHighest) {
  ShardingProblem problem;
  problem.usage_limit = 100;
  for (const auto& [begin, end] :
       {std::pair(30, 70), std::pair(40, 70), std::pair(50, 120), std::pair(110, 140)})
    problem.nodes.push_back({.begin = begin, .end = end, .costs = {0}, .usages = {10}});
  // From 50 to 70 the first three nodes, from 110 to 120 the last two.
  EXPECT_THAT(usages_of(memory_profile(problem), {0, 0, 0, 0}), ElementsAre(30, 20));
}

TEST(MemoryProfile, AddsUpChangesOfATime) {
  MemoryChanges changes{.times = {4, 1, 4, 2, 2},
                        .differences = {1, 2, 5, 6, 10, 20, 3, 3, -3, -3}};
  normalize(changes);
  EXPECT_THAT(changes.times, ElementsAre(1, 4));
  EXPECT_THAT(changes.differences, ElementsAre(5, 6, 11, 22));
}

/// Two nodes of two strategies; at times 0 to 4 they use
///   first:  4|8   4|8   2|4   2|4   6|6
///   second: 0|0   1|3   1|3   0|0   0|0
MemoryProfile two_nodes() {
  return {.left = {20, 6, 6, 5, 5},
          .multipliers = {1, 2, 4, 8, 16},
          .nodes = {{{0, 2, 4}, {4, 8, -2, -4, 4, 2}}, {{1, 3}, {1, 3, -1, -3}}}};
}

TEST(MemoryProfile, LeavesOutTimesThatCannotBindOrAreNeverWorse) {
  // Time 0: at most 8 of 20. Time 2 is never more than time 1, and time 3 at most 4 of 5.
  const MemoryProfile binding = binding_times(two_nodes());
  EXPECT_THAT(binding.left, ElementsAre(6, 5));
  EXPECT_THAT(binding.multipliers, ElementsAre(2 + 4, 16));
  EXPECT_THAT(usages_of(binding, {0, 1}), ElementsAre(4 + 3, 6));
  EXPECT_THAT(usages_of(binding, {1, 0}), ElementsAre(8 + 1, 6));
}

TEST(MemoryProfile, KeepsTheTimesOfPeaks) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ShardingProblem problem = random_problem(seed, true);
    const MemoryProfile all = memory_profile(problem), binding = binding_times(all);
    EXPECT_LE(binding.time_count(), all.time_count());
    for_each_choice(problem, [&](const Strategies& chosen) {
      const bool is_within = evaluate_sharding(problem, chosen).peak_usage <= *problem.usage_limit;
      EXPECT_EQ(fits(all, usages_of(all, chosen)), is_within) << "seed " << seed;
      EXPECT_EQ(fits(binding, usages_of(binding, chosen)), is_within) << "seed " << seed;
    });
  }
}

TEST(LeastMemory, NamesStrategiesThatNeverFit) {
  MemoryProfile memory = two_nodes();
  memory.left = {8, 8, 8, 8, 8};
  memory.nodes[0] = {{0, 2}, {4, 8, -2, -4}};
  const std::vector<std::int32_t> both{0, 1};
  LeastMemory least(memory.left);
  for (const MemoryChanges& changes : memory.nodes) least.add(changes, both);
  ASSERT_TRUE(least.finish());
  // The first node uses 8 at time 1, where the second one uses at least 1.
  EXPECT_THAT(least.exceeding(memory.nodes[0], both), ElementsAre(1));
  EXPECT_THAT(least.exceeding(memory.nodes[1], both), ElementsAre());
}

TEST(LeastMemory, SaysThatNothingFits) {
  const std::vector<double> left{3, 4};
  LeastMemory least(left);
  least.add({{0}, {2, 5}}, std::vector<std::int32_t>{0, 1});
  least.add({{1}, {3, 3}}, std::vector<std::int32_t>{0, 1});
  EXPECT_FALSE(least.finish());  // 2 + 3 at time 1
}

}  // namespace
}  // namespace meshwright
