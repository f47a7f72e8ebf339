/// Plans and refusals in words.
#pragma once

#include <string>

#include "core/evaluation.hpp"
#include "core/plan.hpp"
#include "planner/candidates.hpp"
#include "planner/memory_screen.hpp"
#include "planner/prospects.hpp"

namespace meshwright {

/// One line: where tensor ranks lie, what the pipeline wastes, what communication is exposed, and
/// what the nearest alternative would cost: "TP 8 stays in the node; PP 8 has a bubble of
/// 12.3 %; tp communication costs 9.8 %; without recomputation it would need 96.1 GiB". The bubble
/// is that of plan tables: of the busiest rank, in the period.
std::string why(const Plan& plan, const Evaluation& evaluation, const Prospect& prospect,
                const Job& job);

/// "needs 112.3 GiB on stage 0 of the leanest split (tp 8, pp 1, …); the device has 80.0 GiB".
std::string reason_of_shortfall(const Plan& plan, const MemoryShortfall& shortfall);

/// No candidate was left after listing.
std::string reason_of_empty_space(const CandidateSpace& space);

}  // namespace meshwright
