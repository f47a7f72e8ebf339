/// Explanations of plans and of infeasible jobs.
#pragma once

#include <string>

#include "core/plan/plan.hpp"
#include "core/timeline/evaluation.hpp"
#include "planner/search/memory_screen.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

/// One line: placement of tensor ranks, pipeline bubble, largest exposed communication, and the
/// memory of the nearest faster alternative: "TP 8 stays in the node; PP 8 has a bubble of 12.3 %
/// (busiest rank 9.1 %); exposed TP communication is 9.8 % of the step; without recomputation it
/// would need 96.1 GiB". The bubbles are those of the plan tables: of the period.
std::string why(const Plan& plan, const Evaluation& evaluation, const SearchJob& job);

/// "the plan with the lowest peak memory (TP8 PP2, 1f1b, …) needs 112.3 GiB on pipeline rank 0; the
/// device has 80.0 GiB".
std::string reason_of_shortfall(const Plan& plan, const MemoryShortfall& shortfall);
/// The reason if no layout can hold the model state.
std::string reason_of_state(const MemoryShortfall& shortfall);

/// The reason if enumeration found no candidate.
std::string reason_of_empty_space(const SearchSpace& space);

}  // namespace meshwright
