/// The result of several searches as text and JSON.
#pragma once

#include <string>

#include "cli/plan/sizing_search.hpp"

namespace meshwright {

std::string sizing_report(const Sizing& sizing, const PlanRequest& request);
/// {"schema": 1, "points": [{"model", "cluster", "gpus", "plan", "reason", "search",
/// "meets_deadline", "on_pareto_front", …}, …], "recommended": index or null, …}
std::string sizing_json(const Sizing& sizing, const PlanRequest& request);

}  // namespace meshwright
