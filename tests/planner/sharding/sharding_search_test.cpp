#include "planner/sharding/sharding_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planner/sharding/memory_profile.hpp"
#include "planner/sharding/message_passing.hpp"

namespace meshwright {
namespace {

/// Calls visit(strategies) for all choices of strategies.
template <class Visit>
void for_each_choice(const ShardingProblem& problem, const Visit& visit) {
  Strategies chosen(problem.nodes.size(), 0);
  while (true) {
    visit(chosen);
    std::size_t v = 0;
    while (v < chosen.size() &&
           ++chosen[v] == static_cast<std::int32_t>(problem.nodes[v].costs.size()))
      chosen[v++] = 0;
    if (v == chosen.size()) return;
  }
}

/// The least cost of all choices that fit; kForbiddenCost: none does.
std::int64_t least_cost(const ShardingProblem& problem) {
  std::int64_t least = kForbiddenCost;
  for_each_choice(problem, [&](const Strategies& chosen) {
    const ShardingChoice choice = evaluate_sharding(problem, chosen);
    if (!problem.usage_limit || choice.peak_usage <= *problem.usage_limit)
      least = std::min(least, choice.cost);
  });
  return least;
}

/// Up to nine nodes with up to three strategies.
ShardingProblem random_problem(std::uint64_t seed, bool has_limit) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  ShardingProblem problem;
  const std::int64_t nodes = 2 + below(8);
  for (std::int64_t v = 0; v < nodes; ++v) {
    ShardingNode node{.begin = below(10), .end = 0, .costs = {}, .usages = {}};
    node.end = node.begin + below(8);  // sometimes empty
    for (std::int64_t k = 1 + below(3); k > 0; --k) {
      node.costs.push_back(below(50));
      node.usages.push_back(below(20));
    }
    problem.nodes.push_back(std::move(node));
  }
  for (std::int64_t e = below(2 * nodes); e > 0; --e) {
    const std::int64_t a = below(nodes), b = below(nodes);
    if (a == b) continue;
    ShardingEdge edge{static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), {}};
    const std::size_t pairs = problem.nodes[static_cast<std::size_t>(a)].costs.size() *
                              problem.nodes[static_cast<std::size_t>(b)].costs.size();
    for (std::size_t i = 0; i < pairs; ++i)
      edge.costs.push_back(below(6) == 0 ? kForbiddenCost : below(60));
    problem.edges.push_back(std::move(edge));
  }
  if (has_limit) problem.usage_limit = 10 + below(40);
  return problem;
}

TEST(ShardingSearch, AgreesWithAllChoicesOfSmallProblems) {
  int proved = 0, found = 0, feasible = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const ShardingProblem problem = random_problem(seed, seed % 2 == 0);
    const std::int64_t least = least_cost(problem);
    const ShardingResult result = search_sharding(problem, {.steps = 1500});
    EXPECT_LE(result.lower_bound, least) << "seed " << seed;
    feasible += least < kForbiddenCost ? 1 : 0;
    if (!result.best) continue;
    const ShardingChoice& best = *result.best;
    EXPECT_EQ(evaluate_sharding(problem, best.strategies).cost, best.cost);
    EXPECT_LE(best.peak_usage, problem.usage_limit.value_or(INT64_MAX)) << "seed " << seed;
    EXPECT_GE(best.cost, least) << "seed " << seed;
    if (result.is_optimal()) {
      EXPECT_EQ(best.cost, least) << "seed " << seed;
    }
    proved += result.is_optimal() ? 1 : 0;
    found += best.cost == least ? 1 : 0;
  }
  EXPECT_GE(found, feasible * 97 / 100) << "of " << feasible;
  EXPECT_GE(proved, feasible / 2) << "of " << feasible;
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
  EXPECT_FALSE(search_sharding(problem, {.steps = 200}).best.has_value());
}

TEST(MemoryProfile, HasTheTimesThatCanBeHighest) {
  ShardingProblem problem;
  for (const auto& [begin, end] :
       {std::pair(30, 70), std::pair(40, 70), std::pair(50, 120), std::pair(110, 140)})
    problem.nodes.push_back({.begin = begin, .end = end, .costs = {0}, .usages = {10}});
  const MemoryProfile profile(problem);
  // From 50 to 70 the first three nodes, from 110 to 120 the last two.
  EXPECT_THAT(profile.usages_of({0, 0, 0, 0}), testing::ElementsAre(30, 20));
}

// Bounds hold for the prices of the call, also after messages under others.
TEST(MessagePassing, BoundsTheLeastCostUnderChangingPrices) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ShardingProblem problem = random_problem(seed, false);
    const StrategyGraph graph(problem);
    MessagePassing messages(graph);
    std::mt19937_64 random(seed);
    for (int call = 0; call < 5; ++call) {
      std::vector<double> prices(graph.total_strategies());
      for (double& price : prices) price = static_cast<double>(random() % 30);
      double least = 4 * kForbiddenSum;
      for_each_choice(problem, [&](const Strategies& chosen) {
        double sum = graph.cost(chosen);
        for (std::size_t v = 0; v < chosen.size(); ++v)
          sum += prices[graph.offset(v) + static_cast<std::size_t>(chosen[v])];
        least = std::min(least, sum);
      });
      if (least >= kForbiddenSum) continue;
      for (int pass = 0; pass < 3; ++pass)
        EXPECT_LE(messages.pass(prices), least + 0.1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace meshwright
