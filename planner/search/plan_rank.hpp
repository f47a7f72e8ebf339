/// Where a plan stands in a space: the share of plans at random that are faster.
#pragma once

#include <cstdint>
#include <string>

#include "core/plan/plan.hpp"
#include "planner/search/fixed_choices.hpp"
#include "planner/search/search_job.hpp"

namespace meshwright {

/// Step times closer than this are equal: many plans differ only in options that hardly matter.
inline constexpr double kFasterBy = 0.01;

struct PlanRank {
  /// The first choice of the plan that no plan of the space has, as "zero 3"; empty: it is in the
  /// space. The stage cut and the number of recomputed blocks are not compared.
  std::string outside;
  std::int64_t drawn = 0;  ///< candidates at random, each with the same probability
  int fitting = 0;         ///< of these, those that are valid and fit in memory
  int faster = 0;          ///< of these, those faster by more than kFasterBy
};

struct PlanRankOptions {
  int fitting = 200;            ///< stop when as many fit
  std::int64_t drawn = 20'000;  ///< or when as many were drawn
};

/// The choices of a strategy that search() does not make: dtype, attention, precision, rank order,
/// routing, and how replicas communicate.
FixedChoices choices_not_searched(const Strategy& strategy);

/// `step_time`: of the plan. The result does not depend on the number of threads. InputError as
/// search().
PlanRank rank_of(const Plan& plan, Ticks step_time, const SearchJob& job,
                 const PlanRankOptions& options = {});

}  // namespace meshwright
