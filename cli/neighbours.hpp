/// Plans one change away from a plan: what would a larger micro-batch, no recomputation, another
/// split give?
#pragma once

#include <string>
#include <vector>

#include "cli/job.hpp"
#include "core/io_plan.hpp"

namespace meshwright {

struct EvaluatedNeighbour {
  std::string change;  ///< the flags that make it: "--micro-batch 2", "--tp 4 --dp 8"
  PlanFigures figures;
};

/// In a fixed order; only those that check_plan() accepts for the job's model and cluster, each
/// evaluated with the job's cost model.
std::vector<EvaluatedNeighbour> evaluate_neighbours(const Job& job);

}  // namespace meshwright
