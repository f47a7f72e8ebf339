/// The result of one search as text and JSON.
#pragma once

#include <optional>
#include <string>

#include "cli/plan/plan_search.hpp"
#include "cli/terminal/document.hpp"

namespace meshwright {

Document plan_report(const PlanSearch& search, const std::optional<PlannedRun>& run,
                     bool why_for_all);
std::string plan_json(const PlanSearch& search, const std::optional<PlannedRun>& run);

/// {"candidates": …, "pruned": {…}, "simulated": …, "seconds": …, "proved_optimal": …, "gap": …}
std::string certificate_json(const SearchCertificate& certificate, Seconds time);
/// Figures of plan `i`, with the keys "trainer_problems" and, with --tokens, "training".
std::string ranked_plan_json(const PlanSearch& search, std::size_t i);

}  // namespace meshwright
