#include "planner/sharding/message_passing.hpp"

#include <gtest/gtest.h>

#include "planner/sharding/strategy_graph.hpp"
#include "tests/planner/sharding/small_sharding_problems.hpp"

namespace meshwright {
namespace {

// Bounds hold for the prices of the call, also after messages under others.
TEST(MessagePassing, BoundsTheLeastCostUnderChangingPrices) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ShardingProblem problem = random_problem(seed, false);
    const StrategyGraph graph(unreduced(problem));
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

// No choice with a strategy costs less than bound and reduced cost of the strategy.
TEST(MessagePassing, ReducedCostsBoundStrategies) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const ShardingProblem problem = random_problem(seed, false);
    const StrategyGraph graph(unreduced(problem));
    MessagePassing messages(graph);
    const std::vector<double> prices(graph.total_strategies(), 0);
    std::vector<double> least(graph.total_strategies(), 4 * kForbiddenSum);
    for_each_choice(problem, [&](const Strategies& chosen) {
      for (std::size_t v = 0; v < chosen.size(); ++v) {
        double& own = least[graph.offset(v) + static_cast<std::size_t>(chosen[v])];
        own = std::min(own, graph.cost(chosen));
      }
    });
    double highest = 0;
    for (int pass = 0; pass < 4; ++pass) {
      const double bound = messages.pass(prices);
      const std::vector<double> reduced = messages.reduced_costs(prices);
      for (std::size_t k = 0; k < reduced.size(); ++k) {
        EXPECT_GE(reduced[k], -0.1);
        highest = std::max(highest, reduced[k]);
        if (least[k] < kForbiddenSum) {
          EXPECT_LE(bound + reduced[k], least[k] + 0.1) << "seed " << seed;
        }
      }
    }
    if (graph.total_strategies() > 2 * graph.node_count()) {
      EXPECT_GT(highest, 0) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace meshwright
