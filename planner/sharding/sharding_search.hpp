/// Chooses the strategies of a sharding problem: reduced to groups, message passing and prices of
/// memory at every time (Lagrange multipliers) for a bound and first choices, then branch and bound
/// over parts of it, in the end over all, and moves of whole forests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/model/sharding_problem.hpp"
#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {

struct ShardingOptions {
  /// With the same seed and steps results are equal, unless `time_used` ends the search.
  std::int64_t steps = 10'000;
  std::uint64_t seed = 1;
  /// Share of the time that the search may take; from 1 on it ends. Polled in every step.
  std::function<double()> time_used = [] { return 0.0; };
};

struct ShardingChoice {
  Strategies strategies;
  std::int64_t cost = 0;
  std::int64_t peak_usage = 0;
};

struct ShardingResult {
  std::optional<ShardingChoice> best;  ///< absent: none was found that fits
  /// No choice that fits costs less.
  std::int64_t lower_bound = 0;
  bool is_optimal() const { return best && best->cost <= lower_bound; }
  /// It is proved that no choice fits.
  bool is_infeasible() const { return !best && lower_bound >= kForbiddenCost; }
};

/// Searches until the result is optimal, or steps or time are used up.
ShardingResult search_sharding(const ShardingProblem& problem, const ShardingOptions& options = {});

/// Exact: from the costs of the problem itself. Forbidden pairs cost kForbiddenCost once in all.
ShardingChoice evaluate_sharding(const ShardingProblem& problem, Strategies strategies);

}  // namespace meshwright
