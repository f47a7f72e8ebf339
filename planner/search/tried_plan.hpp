/// Single plans that are tried beside the enumerated space.
#pragma once

#include <optional>

#include "core/base/units.hpp"
#include "planner/search/search.hpp"
#include "planner/search/search_job.hpp"

namespace meshwright {

/// complete_plan(); nullopt: the strategy is not valid.
std::optional<Plan> completed_plan(const Strategy& strategy, const SearchJob& job);

/// Lower bound of the step time of a valid plan, from the times of its stages without messages and
/// the end of the step. 0 where the times of stages are not those of their layers.
Ticks step_bound_of(const Plan& plan, const SearchJob& job);

/// nullopt: the plan is not valid, the trainer cannot run it, it does not fit, or a bound says that
/// it is not faster than `limit`.
std::optional<Ticks> step_time_of(const Plan& plan, const SearchJob& job, Ticks limit);

/// True if a step is shorter by more than this share of it.
constexpr bool is_worthwhile(Ticks before, Ticks after, double gain) {
  return ratio(before - after, before) > gain;
}

}  // namespace meshwright
