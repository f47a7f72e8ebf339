/// A sharding problem without what follows from the rest. Forbidden pairs tie most operators to
/// another one: tens of thousands of them become a few hundred groups.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/sharding_problem.hpp"
#include "planner/sharding/memory_profile.hpp"

namespace meshwright {

/// Stands for kForbiddenCost, and for all costs above it: far more than a good choice costs, and
/// small enough that whole numbers can be added to it.
inline constexpr double kForbiddenSum = 1e14;

struct ReducedSharding {
  struct Edge {
    std::int32_t first = 0, second = 0;  ///< of a result: first < second, one edge per pair
    std::vector<double> costs;           ///< by strategy of the first node, then of the second
  };
  /// The strategy of a node of the problem, from those of up to two others; -1: none.
  struct Choice {
    std::int32_t node = -1, first = -1, second = -1;
    std::size_t columns = 1;               ///< strategies of `second`
    std::vector<std::int32_t> strategies;  ///< by strategy of `first`, then of `second`
  };

  std::vector<std::vector<double>> costs;  ///< by node, then strategy
  std::vector<Edge> edges;
  MemoryProfile memory;
  double constant = 0;  ///< part of every cost
  /// Some node has no strategy that its neighbors allow; nodes and edges are empty then.
  bool is_impossible = false;

  std::vector<Choice> choices;                    ///< in the order in which nodes were removed
  std::vector<std::int32_t> kept;                 ///< node of the problem by node
  std::vector<std::vector<std::int32_t>> domain;  ///< strategy of the problem, by node and strategy
};

/// The problem itself, with costs of at most kForbiddenSum.
ReducedSharding unreduced(const ShardingProblem& problem);

/// Exact: the best choices of both problems have the same cost. Strategies are removed that a
/// neighbor never allows, beside which another one is never worse, or that exceed the limit even if
/// all others use as little memory as they can; nodes with one strategy left are fixed; a node is
/// part of a neighbor whose strategy leaves it one; a node with up to two neighbors whose memory
/// does not depend on its strategy is removed: it follows them. `kept`, `domain` and `choices`
/// refer to nodes of `problem`.
ReducedSharding reduce_sharding(const ReducedSharding& problem);

/// The strategies of all nodes of the problem that was reduced.
Strategies expand(const ReducedSharding& reduced, const Strategies& chosen);

}  // namespace meshwright
