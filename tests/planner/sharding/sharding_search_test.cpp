#include "planner/sharding/sharding_search.hpp"

#include <gtest/gtest.h>

#include "tests/planner/sharding/small_sharding_problems.hpp"

namespace meshwright {
namespace {

TEST(ShardingSearch, ProvesTheBestOfAllChoices) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const ShardingProblem problem = random_problem(seed, seed % 3 != 0);
    const std::int64_t least = least_cost(problem);
    const ShardingResult result = search_sharding(problem, {.steps = 1500});
    EXPECT_EQ(result.is_infeasible(), least >= kForbiddenCost) << "seed " << seed;
    ASSERT_EQ(result.is_optimal(), least < kForbiddenCost) << "seed " << seed;
    if (!result.best) continue;
    const ShardingChoice& best = *result.best;
    EXPECT_EQ(best.cost, least) << "seed " << seed;
    EXPECT_EQ(evaluate_sharding(problem, best.strategies).cost, best.cost) << "seed " << seed;
    EXPECT_LE(best.peak_usage, problem.usage_limit.value_or(INT64_MAX)) << "seed " << seed;
  }
}

// Whatever ends the search, what it says holds.
TEST(ShardingSearch, IsRightWhereverItEnds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const ShardingProblem problem = random_problem(seed, true);
    const std::int64_t least = least_cost(problem);
    const ShardingResult result =
        search_sharding(problem, {.steps = static_cast<std::int64_t>(seed % 7)});
    EXPECT_LE(result.lower_bound, least) << "seed " << seed;
    if (!result.best) continue;
    EXPECT_GE(result.best->cost, least) << "seed " << seed;
    EXPECT_LE(result.best->peak_usage, *problem.usage_limit) << "seed " << seed;
  }
}

/// A triangle of two strategies each: equal neighbors cost 10. Two of three must be equal.
ShardingProblem triangle() {
  ShardingProblem problem;
  problem.nodes.assign(3, {.begin = 0, .end = 1, .costs = {0, 1}, .usages = {5, 1}});
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(1, 2), std::pair(0, 2)})
    problem.edges.push_back({a, b, {10, 0, 0, 10}});
  return problem;
}

TEST(ShardingSearch, FindsTheBestOfAnOddCycle) {
  EXPECT_EQ(search_sharding(triangle(), {.steps = 200}).best->cost, 11);
}

TEST(ShardingSearch, KeepsTheLimitOfMemory) {
  ShardingProblem problem = triangle();
  problem.usage_limit = 7;  // at most one node with 5
  const ShardingResult result = search_sharding(problem, {.steps = 300});
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.best->cost, 12);  // one, one and zero: 10 + 0 + 0, and two costs of 1
  EXPECT_EQ(result.best->peak_usage, 7);
}

TEST(ShardingSearch, FindsNothingIfNothingFits) {
  ShardingProblem problem = triangle();
  problem.usage_limit = 2;
  EXPECT_TRUE(search_sharding(problem, {.steps = 200}).is_infeasible());
}

// Costs this high are not told from forbidden ones: nothing is proved.
TEST(ShardingSearch, DoesNotClaimThatHighCostsAreForbidden) {
  ShardingProblem problem;
  problem.nodes.assign(1, {.begin = 0, .end = 1, .costs = {kForbiddenCost / 10}, .usages = {1}});
  const ShardingResult result = search_sharding(problem, {.steps = 10});
  EXPECT_FALSE(result.is_infeasible());
  EXPECT_LE(result.lower_bound, kForbiddenCost / 10);
}

}  // namespace
}  // namespace meshwright
