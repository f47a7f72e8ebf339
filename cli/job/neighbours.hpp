/// Plans that differ from a plan by one change: another micro-batch size, recomputation, schedule
/// or parallel size.
#pragma once

#include <string>
#include <vector>

#include "cli/job/job.hpp"
#include "core/formats/plan.hpp"

namespace meshwright {

struct EvaluatedNeighbour {
  std::string change;  ///< as flags: "--micro-batch 2", "--tp 4 --dp 8"
  PlanFigures figures;
};

/// In a fixed order; only plans that check_plan() accepts, evaluated with the job's cost model.
std::vector<EvaluatedNeighbour> evaluate_neighbours(const Job& job);

}  // namespace meshwright
