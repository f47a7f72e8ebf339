/// `plan --sensitivity`: does plan 1 stay the fastest?
#pragma once

#include <optional>
#include <string>

#include "cli/plan/plan_search.hpp"
#include "cli/terminal/document.hpp"

namespace meshwright {

/// Searches again with 10 % less and more of each HardwareFigure, for up to another --time-limit in
/// total, and compares the ranges of the predictions. The memory that changes is what plans may
/// use, without --margin. Nothing if no plan was found.
std::optional<PlanSensitivity> plan_sensitivity(const PlanFlags& flags, const PlanSearch& search);

/// A table and its verdict, framed by empty lines; empty without `search.sensitivity`.
Document sensitivity_text(const PlanSearch& search);
/// {"hardware": [{"figure": …, "factor": …, "plans": […], "fastest": {…}, "gap": …}, …],
/// "prediction_error": […]}
std::string sensitivity_json(const PlanSearch& search);

}  // namespace meshwright
