/// Where the plans of published runs stand among all plans that their trainers can run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/terminal/document.hpp"
#include "cli/validation/predict_runs.hpp"
#include "planner/search/plan_rank.hpp"

namespace meshwright {

struct RankedRun {
  const LoadedRuns::Job* job = nullptr;
  std::vector<Diagnostic> problems;  ///< why it cannot be ranked; then the rest is empty
  Ticks step_time;                   ///< predicted
  bool fits_in_memory = true;
  PlanRank rank;
  struct BestPlan {
    Strategy strategy;
    Ticks step_time;
    double gap = 0;  ///< of the certificate: by how much the optimum can be faster
  };
  std::optional<BestPlan> best;  ///< of the trainer, for the same job; empty: none was found
};

struct RankingOptions {
  PlanRankOptions rank;
  Seconds time_limit{10};  ///< of the search for the best plan of each run
  int threads = 0;         ///< 0: all cores
  std::function<bool()> canceled = {};
};

/// One entry per job that is not a trap, in the same order. The job, the dtype, precision and
/// attention are those of the run; all that search() chooses is free.
std::vector<RankedRun> rank_runs(const LoadedRuns& runs, const RankingOptions& options);

/// The share of faster plans below which a plan is one of the best.
inline constexpr double kBestShare = 0.05;
Document ranking_text(std::span<const RankedRun> runs);
std::string ranking_json(std::span<const RankedRun> runs);

}  // namespace meshwright
