#include "planner/sharding/reduced_sharding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "planner/sharding/sharding_part.hpp"
#include "planner/sharding/sharding_tree.hpp"
#include "planner/sharding/strategy_graph.hpp"
#include "tests/planner/sharding/small_sharding_problems.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr std::int64_t kX = kForbiddenCost;

/// Two nodes of three strategies each.
ShardingProblem pair_of_nodes(std::vector<std::int64_t> costs) {
  ShardingProblem problem;
  problem.nodes.assign(2, {.begin = 0, .end = 1, .costs = {0, 1, 2}, .usages = {3, 2, 1}});
  problem.edges.push_back({0, 1, std::move(costs)});
  return problem;
}

TEST(ReducedSharding, MakesTiedNodesOne) {
  // The second node has the next strategy: costs 0 + 1 + 7, 1 + 2 + 8, 2 + 0 + 8; usages 3 + 2,
  // 2 + 1, 1 + 3. The first one does not fit.
  ShardingProblem problem = pair_of_nodes({kX, 7, kX, kX, kX, 8, 8, kX, kX});
  problem.usage_limit = 4;
  const ReducedSharding reduced = reduce_sharding(unreduced(problem));
  ASSERT_THAT(reduced.costs, SizeIs(1));
  EXPECT_THAT(reduced.edges, SizeIs(0));
  EXPECT_THAT(reduced.costs[0], UnorderedElementsAre(11, 10));
}

TEST(ReducedSharding, FixesWhatHasOneStrategyLeft) {
  // One pair of strategies is allowed.
  const ReducedSharding reduced =
      reduce_sharding(unreduced(pair_of_nodes({kX, kX, kX, kX, kX, 5, kX, kX, kX})));
  EXPECT_THAT(reduced.costs, SizeIs(0));
  EXPECT_EQ(reduced.constant, 1 + 2 + 5);
}

TEST(ReducedSharding, RemovesStrategiesThatAreNeverBetter) {
  // Costs of the first node with its edge: 4 4 9, 3 3 3, 2 5 3; usages 3, 2, 1. Strategy 0 is
  // never better than 1; strategy 2 uses less.
  ShardingProblem problem = pair_of_nodes({4, 4, 9, 2, 2, 2, 0, 3, 1});
  problem.usage_limit = 5;
  const ReducedSharding reduced = reduce_sharding(unreduced(problem));
  ASSERT_THAT(reduced.domain, SizeIs(2));
  EXPECT_THAT(reduced.domain[0], ElementsAre(1, 2));
}

TEST(ReducedSharding, KnowsThatNothingIsAllowed) {
  EXPECT_TRUE(reduce_sharding(unreduced(pair_of_nodes({kX, kX, kX, kX, kX, kX, kX, kX, kX})))
                  .is_impossible);
}

/// The least cost of all choices of a reduced problem that fit, and the strategies.
std::pair<double, Strategies> least_of(const ReducedSharding& reduced) {
  ShardingProblem sizes;
  for (const auto& costs : reduced.costs)
    sizes.nodes.push_back({.costs = std::vector<std::int64_t>(costs.size(), 0), .usages = {}});
  const StrategyGraph graph(reduced);
  std::pair<double, Strategies> least{kForbiddenSum, {}};
  if (reduced.is_impossible) return least;
  for_each_choice(sizes, [&](const Strategies& chosen) {
    const double cost = graph.cost(chosen) + reduced.constant;
    if (cost < least.first && fits(reduced.memory, usages_of(reduced.memory, chosen)))
      least = {cost, chosen};
  });
  return least;
}

TEST(ReducedSharding, HasTheSameBestChoice) {
  std::size_t nodes = 0, left = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const ShardingProblem problem = random_problem(seed, seed % 3 != 0);
    const std::int64_t best = least_cost(problem);
    const ReducedSharding reduced = reduce_sharding(unreduced(problem));
    nodes += problem.nodes.size();
    left += reduced.costs.size();
    const auto [cost, chosen] = least_of(reduced);
    if (best >= kForbiddenCost) {
      EXPECT_GE(cost, kForbiddenSum) << "seed " << seed;
      continue;
    }
    EXPECT_EQ(cost, static_cast<double>(best)) << "seed " << seed;
    const ShardingChoice expanded = evaluate_sharding(problem, expand(reduced, chosen));
    EXPECT_EQ(expanded.cost, best) << "seed " << seed;
    EXPECT_LE(expanded.peak_usage, problem.usage_limit.value_or(INT64_MAX)) << "seed " << seed;
  }
  EXPECT_LT(left, nodes / 3);
}

TEST(ShardingTree, AgreesWithAllChoices) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const ShardingProblem problem = random_problem(seed, seed % 3 != 0);
    const std::int64_t best = least_cost(problem);
    const TreeResult result =
        search_tree(unreduced(problem),
                    {.cutoff = kForbiddenSum, .most_nodes = 10'000, .stop = [] { return false; }});
    ASSERT_TRUE(result.is_complete) << "seed " << seed;
    ASSERT_EQ(result.best.has_value(), best < kForbiddenCost) << "seed " << seed;
    if (!result.best) continue;
    EXPECT_EQ(result.cost, static_cast<double>(best)) << "seed " << seed;
    EXPECT_EQ(evaluate_sharding(problem, *result.best).cost, best) << "seed " << seed;
  }
}

TEST(ShardingTree, FindsNothingThatCostsTheCutoff) {
  const ShardingProblem problem = pair_of_nodes({0, 0, 0, 0, 0, 0, 0, 0, 0});
  const auto search = [&](double cutoff) {
    return search_tree(unreduced(problem),
                       {.cutoff = cutoff, .most_nodes = 10, .stop = [] { return false; }});
  };
  EXPECT_FALSE(search(0).best.has_value());
  EXPECT_TRUE(search(0).is_complete);
  EXPECT_THAT(search(1).best, testing::Optional(ElementsAre(0, 0)));
}

// A part has the costs and the memory of the problem, up to a constant.
TEST(ShardingPart, DiffersFromTheProblemByAConstant) {
  Chance random(7);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ShardingProblem problem = random_problem(seed, true);
    const ReducedSharding whole = unreduced(problem);
    const StrategyGraph graph(whole);
    Strategies chosen;
    for (const ShardingNode& node : problem.nodes)
      chosen.push_back(static_cast<std::int32_t>(random.next() % node.costs.size()));
    if (graph.cost(chosen) >= kForbiddenSum) continue;
    const std::size_t size = 1 + random.next() % problem.nodes.size();
    const auto nodes = choose_part(graph, whole.memory, size, random);
    ASSERT_EQ(nodes.size(), size);
    const ReducedSharding part = part_of(graph, whole.memory, chosen, nodes);
    Strategies own, other = chosen;
    for (const std::int32_t node : nodes) own.push_back(chosen[static_cast<std::size_t>(node)]);
    const double rest = graph.cost(chosen) - StrategyGraph(part).cost(own);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto v = static_cast<std::size_t>(nodes[i]);
      own[i] = other[v] = static_cast<std::int32_t>(random.next() % graph.strategies(v));
    }
    const double cost = graph.cost(other);
    if (cost < kForbiddenSum) {
      EXPECT_EQ(StrategyGraph(part).cost(own) + rest, cost) << "seed " << seed;
    }
    EXPECT_EQ(fits(part.memory, usages_of(part.memory, own)),
              fits(whole.memory, usages_of(whole.memory, other)))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace meshwright
