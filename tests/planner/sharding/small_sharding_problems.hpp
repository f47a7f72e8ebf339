/// Small sharding problems at random, and all of their choices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "planner/sharding/sharding_search.hpp"

namespace meshwright {

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
inline std::int64_t least_cost(const ShardingProblem& problem) {
  std::int64_t least = kForbiddenCost;
  for_each_choice(problem, [&](const Strategies& chosen) {
    const ShardingChoice choice = evaluate_sharding(problem, chosen);
    if (!problem.usage_limit || choice.peak_usage <= *problem.usage_limit)
      least = std::min(least, choice.cost);
  });
  return least;
}

/// Up to nine nodes with up to three strategies. Every third edge ties its nodes: it allows each
/// strategy of the first one only one of the second.
inline ShardingProblem random_problem(std::uint64_t seed, bool has_limit) {
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
    const bool is_tie = below(3) == 0;
    for (std::size_t i = 0; i < pairs; ++i)
      edge.costs.push_back(is_tie || below(6) == 0 ? kForbiddenCost : below(60));
    const std::size_t columns = problem.nodes[static_cast<std::size_t>(b)].costs.size();
    for (std::size_t k = 0; is_tie && k < pairs / columns; ++k)
      edge.costs[k * columns + (k + static_cast<std::size_t>(below(2))) % columns] = below(60);
    problem.edges.push_back(std::move(edge));
  }
  if (has_limit) problem.usage_limit = 10 + below(40);
  return problem;
}

}  // namespace meshwright
