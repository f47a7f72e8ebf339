/// The result of `partition` for operators with sharding strategies, as text and JSON.
#pragma once

#include <string>

#include "cli/terminal/document.hpp"
#include "planner/sharding/sharding_search.hpp"

namespace meshwright {

Document sharding_text(const ShardingResult& result, const ShardingProblem& problem,
                       const std::string& name);
/// {"schema", "nodes", "edges", "cost", "lower_bound", "gap", "proved_optimal", "peak_usage",
/// "usage_limit", "strategies": [of every node], "infeasible"}
std::string sharding_json(const ShardingResult& result, const ShardingProblem& problem);
/// {"strategies": [of every node]}
std::string strategies_json(const ShardingChoice& choice);

}  // namespace meshwright
