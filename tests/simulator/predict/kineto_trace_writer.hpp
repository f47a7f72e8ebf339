// Writes the predicted timeline of one rank as PyTorch's profiler would record it: operators with
// their inputs, launches with correlation numbers, kernels, and NCCL's arguments.
#pragma once

#include <string>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/plan/plan.hpp"
#include "simulator/engine/simulate.hpp"

namespace meshwright {

/// What lower() knew and the graph no longer tells.
struct WrittenJob {
  const TaskGraph& graph;
  const CostModel& cost_model;
  const SimulatedTimes& times;
  const Strategy& strategy;
  std::int64_t hidden = 0, key_heads = 0;  ///< key and value heads of the whole model
  int gpus_per_node = 8;
};

/// Several equal steps of the first rank's compute and communication streams; pipeline messages are
/// left out. Steps are separated by synchronizations.
std::string kineto_trace_of(const WrittenJob& job, int steps);

}  // namespace meshwright
