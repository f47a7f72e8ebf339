/// Days, GPU-hours and cost of training runs as table columns, notes and JSON.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cli/plan/plan_search.hpp"
#include "cli/terminal/table.hpp"
#include "planner/sizing/run_cost.hpp"

namespace meshwright {

/// One row per plan: days, their p10 to p90 if any plan has them, GPU-hours, cost if any has one,
/// goodput if the run has failures.
Table run_cost_table(const PlannedRun& run, std::span<const std::optional<RunCost>> costs);

/// "15T", "6.5536B": with a suffix if at most four decimals are left, else all digits.
std::string tokens_text(std::int64_t tokens);
/// "73.2": three significant digits, or whole days.
std::string days_text(Seconds time);

/// What the columns mean: whether days include failures.
std::string failures_note(const PlannedRun& run);
/// Where the price of a cluster comes from, or how to set one.
std::string price_note(const PlannedRun& run, const PlanCluster& cluster);

/// {"steps": …, "days": …, "days_p10": …, "days_p90": …, "gpu_hours": …, "cost_usd": …, "goodput":
/// …}; what is unknown is null. "null" if the run never completes.
std::string run_cost_json(const std::optional<RunCost>& cost);

}  // namespace meshwright
