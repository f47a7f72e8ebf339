/// Plans that differ from a plan by one change: another micro-batch size, recomputation, schedule
/// or parallel size.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "core/formats/plan.hpp"
#include "core/timeline/evaluation_difference.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

struct ChangedStrategy {
  std::string change;  ///< as flags: "--micro-batch 2", "--tp 4 --dp 8"
  Strategy strategy;
};
/// In a fixed order; may be invalid.
std::vector<ChangedStrategy> single_changes(const Strategy& base);

struct EvaluatedNeighbor {
  std::string change;  ///< of ChangedStrategy
  PlanFigures figures;
  int fullest_pipeline_rank = 0;
  MemoryAmounts fullest_memory = {};  ///< of the fullest rank, at its peak
};

/// In a fixed order; only plans that check_plan() accepts, predicted with the job's cost model.
std::vector<EvaluatedNeighbor> evaluate_neighbors(const TrainingJob& job);

/// The plan of `job` with one choice of `other` at a time: its parallel sizes, its schedule, ….
/// Choices that are equal are left out, and those that alone give no valid plan.
std::vector<EvaluatedNeighbor> evaluate_changes_towards(const TrainingJob& job,
                                                        const Strategy& other);

/// Memory beyond the capacity of the device; 0: fits.
Bytes missing_memory(const PlanFigures& figures);

/// The fastest neighbor that is faster than `step_time`, fits, and that the trainer of the job can
/// run; null if there is none.
const EvaluatedNeighbor* fastest_that_fits(const TrainingJob& job,
                                           std::span<const EvaluatedNeighbor> neighbors,
                                           Ticks step_time);

/// A faster plan that does not fit.
struct BlockedNeighbor {
  EvaluatedNeighbor neighbor;
  std::vector<ComparedTerm<Bytes>> memory;  ///< fullest ranks of the plan and of the neighbor
  /// A second change with which it fits: the fastest one. Never one that takes back the first, and
  /// never a single change of the plan.
  std::optional<EvaluatedNeighbor> remedy;
};
/// The fastest neighbor of the job's plan (evaluated: `evaluation`) that is faster and does not
/// fit, among those that the trainer can run. Predicts all neighbors of the result.
std::optional<BlockedNeighbor> fastest_that_does_not_fit(
    const TrainingJob& job, const Evaluation& evaluation,
    std::span<const EvaluatedNeighbor> neighbors);

}  // namespace meshwright
