/// Which training programs can run a plan, and what the best plan of each is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/plan/plan_flags.hpp"
#include "cli/plan/plan_search.hpp"
#include "cli/terminal/document.hpp"

namespace meshwright {

/// Programs that are compared: profiles of models/trainers.
std::vector<Trainer> compared_trainers();

/// Searches what each program can run, with its costs, in what the time limit leaves after
/// `search`. Empty if a trainer was named, if the costs are those of another program, or if nothing
/// fits.
std::vector<BestOfTrainer> best_of_trainers(const PlanFlags& flags, const PlanSearch& search);

/// One row per plan: the compared programs that can run it.
Table runs_in_column(const PlanSearch& search);

/// A table of the best plans, and a line for each program without one; may be empty.
Document trainer_comparison_text(const PlanSearch& search);
/// [{"name": …, "plan": …, "slower": …, "proved_optimal": …, "problem": …}, …]
std::string trainer_comparison_json(const PlanSearch& search);

}  // namespace meshwright
