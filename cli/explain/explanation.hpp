/// Everything that `explain` says about one plan, as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/variation_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/terminal/document.hpp"
#include "core/graph/task_graph.hpp"
#include "planner/search/neighbors.hpp"

namespace meshwright {

struct Explanation {
  std::vector<RankInfo> ranks;
  Evaluation evaluation;
  PlanFigures figures;
  std::vector<EvaluatedNeighbor> neighbors;
  std::optional<EvaluatedNeighbor> change_first;  ///< the fastest neighbor that is faster and fits
  std::optional<BlockedNeighbor> blocked;
  std::string validation;
  std::string asynchronous;  ///< text on asynchronous training, or empty
  std::vector<Diagnostic> trainer_problems;
};
Explanation explain(const Job& job, const JobFlags& flags);

Document explanation_text(const Job& job, const Explanation& explanation,
                          const FailureFlags& failures);
std::string explanation_json(const Job& job, const Explanation& explanation,
                             const FailureFlags& failures);

/// One row per plan that differs from `plan` by one change with an effect, after a row for `plan`
/// itself.
Table neighbors_table(const std::string& name, const PlanFigures& plan,
                      const std::vector<EvaluatedNeighbor>& neighbors);
/// How much shorter the steps of `figures` are: 0.25 if they take four fifths of `than`.
double gain(const PlanFigures& figures, const PlanFigures& than);

}  // namespace meshwright
