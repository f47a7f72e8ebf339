/// Plans that differ from a plan by one change: another micro-batch size, recomputation, schedule
/// or parallel size.
#pragma once

#include <string>
#include <vector>

#include "core/formats/plan.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

struct EvaluatedNeighbor {
  std::string change;  ///< as flags: "--micro-batch 2", "--tp 4 --dp 8"
  PlanFigures figures;
};

/// In a fixed order; only plans that check_plan() accepts, predicted with the job's cost model.
std::vector<EvaluatedNeighbor> evaluate_neighbors(const TrainingJob& job);

}  // namespace meshwright
