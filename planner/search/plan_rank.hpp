/// Where a plan stands in a space: the share of plans at random that are faster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "planner/search/fixed_choices.hpp"
#include "planner/search/search_job.hpp"
#include "planner/search/space.hpp"

namespace meshwright {

/// Step times closer than this are equal: many plans differ only in options that hardly matter.
inline constexpr double kFasterBy = 0.01;

/// The first choice of a strategy that no plan of the space has, as "zero 3"; empty: it is in the
/// space. The number of recomputed blocks is not compared.
std::string choice_outside(const Strategy& strategy, const SearchSpace& space,
                           const FixedChoices& fixed);

/// `count` candidates of a space that has some, each with the same probability.
std::vector<Candidate> random_candidates(const SearchSpace& space, int count, std::uint64_t seed);

struct PlanRank {
  std::string outside;     ///< choice_outside(); the stage cut is not compared
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
