/// Does a job fit in memory, and if not, which is the smallest change that makes it fit?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/plan/plan_search.hpp"
#include "cli/terminal/document.hpp"

namespace meshwright {

/// --model, --cluster, the size of the job and fixed choices.
void add_fit_question_flags(CLI::App& command, PlanFlags& flags);

/// A job that fits and differs from the one asked for by one change.
struct FittingChange {
  std::string change;  ///< "--gpus 16"
  /// By how much: the factor of more GPUs or fewer tokens; 1: another choice for the same job.
  double factor = 1;
  PlanFigures figures;
};

struct FitAnswer {
  PlanSearch search;                   ///< of the job asked for; refers to model and cluster
  std::vector<FittingChange> changes;  ///< smallest first; empty if the job fits
};

/// The fewest GPUs, and a usual batch and sequence, where they are not given.
PlanFlags with_fit_defaults(PlanFlags flags);
/// UsageError if the flags are invalid or describe several jobs.
PlanRequest fit_request(const PlanFlags& flags);

/// Searches the job, and if nothing fits: the job without each fixed choice, with more GPUs, and
/// with shorter sequences.
FitAnswer answer_fit_question(PlanFlags flags, const PlanRequest& request, const PlanModel& model,
                              const PlanCluster& cluster);

/// One line, and one more with the smallest change if the job does not fit; in formats other than
/// text also a table of the plan or of all changes.
Document fit_text(const FitAnswer& answer, DocumentFormat format = DocumentFormat::kText);
/// {"schema", "model", "cluster", "gpus", "global_batch", "seq", "fits", "plan", "reason",
/// "changes": [{"change", "plan"}, …]}
std::string fit_json(const FitAnswer& answer);

}  // namespace meshwright
