/// The result of several searches as text and JSON.
#pragma once

#include <string>

#include "cli/plan/sizing_search.hpp"
#include "cli/terminal/document.hpp"

namespace meshwright {

Document sizing_report(const Sizing& sizing, const PlanRequest& request);
/// {"schema": 1, "points": [{"model", "cluster", "gpus", "plan", "reason", "search",
/// "meets_deadline", "on_pareto_front", "proved_fewest_gpus"}, …], "recommended", "seconds", "run",
/// "deadline_days"}. "plan": as in "plans" of one search, or null with a "reason"; "recommended":
/// an index of "points", or null; "proved_fewest_gpus" with --gpus auto; "run" with --tokens.
std::string sizing_json(const Sizing& sizing, const PlanRequest& request);

}  // namespace meshwright
