/// `explain A --against B`: two plans side by side, term by term.
#pragma once

#include <string>
#include <vector>

#include "cli/job/job.hpp"
#include "cli/terminal/document.hpp"
#include "core/timeline/evaluation_difference.hpp"
#include "planner/search/neighbors.hpp"

namespace meshwright {

struct ComparedPlan {
  const Job* job = nullptr;
  Evaluation evaluation;
  PlanFigures figures;
  int fullest_pipeline_rank = 0;
};

/// A choice in which the plans differ: a key of the `strategy` object, or of the plan file.
struct DifferingChoice {
  std::string name, a, b;
};

struct PlanDifference {
  ComparedPlan a, b;
  std::vector<DifferingChoice> choices;
  EvaluationDifference terms;
  /// Plan A with one of B's choices at a time; empty if that is B.
  std::vector<EvaluatedNeighbor> single_changes;
};
/// Refers to the jobs. They may have different models, clusters and batches.
PlanDifference compare_plans(const Job& a, const Job& b);

Document difference_text(const PlanDifference& difference);
std::string difference_json(const PlanDifference& difference);

/// "B is 5.5 % faster than A (0.871 s per step): 1.102 s less bubble; but 0.231 s more exposed tp
/// communication." By tokens per second if the steps have different numbers of tokens.
std::string why_faster(const PlanDifference& difference);

}  // namespace meshwright
