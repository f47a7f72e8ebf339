/// Pipeline stages of a chain whose operators choose strategies, with the shortest step: the
/// objective of Aceso.
#pragma once

#include <functional>
#include <optional>

#include "core/model/chain_problem.hpp"

namespace meshwright {

struct ChainPartition {
  ChainPlan plan;
  Seconds lower_bound;  ///< of the step of any plan
  /// Whether no plan is faster, up to rounding.
  bool is_optimal() const { return plan.time.value - lower_bound.value <= 1e-8 * plan.time.value; }
};

/// Empty if nothing fits, or nothing was measured for any micro-batch size that divides the batch.
/// Stages have 1, 2, 4, … devices of one node, as Aceso's have.
///
/// Method: times of all stages are bounded by prices of memory (ChainStages::bounds); over these
/// bounds the best pipelines below a threshold of the slowest stage are found from the last stage
/// on, by number of stages, devices and first operator. Thresholds grow from the least possible one
/// until no step can be shorter. Stages of the best pipeline get their strategies, and the times of
/// these replace their bounds, until all stages of the best pipeline have strategies.
std::optional<ChainPartition> partition_chain(
    const ChainProblem& problem, const std::function<bool()>& stops = [] { return false; });

}  // namespace meshwright
