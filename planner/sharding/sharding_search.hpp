/// Chooses the strategies of a sharding problem: message passing for a bound and first choices,
/// prices of memory at every time (Lagrange multipliers), and moves of whole forests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/base/units.hpp"
#include "core/model/sharding_problem.hpp"
#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {

struct ShardingOptions {
  Seconds time_limit{10.0};
  /// Steps of the search; with the same seed and steps, and enough time, results are equal.
  std::int64_t steps = INT64_MAX;
  std::uint64_t seed = 1;
  std::function<bool()> is_over = [] { return false; };  ///< polled; true: end early
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
};

/// Searches until the result is optimal or a limit is reached.
ShardingResult search_sharding(const ShardingProblem& problem, const ShardingOptions& options = {});

/// Exact: from the costs of the problem itself. Forbidden pairs cost kForbiddenCost once in all.
ShardingChoice evaluate_sharding(const ShardingProblem& problem, Strategies strategies);

}  // namespace meshwright
