/// Times of a task graph → step time and its breakdown, utilization, peak memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/timeline/timeline_of.hpp"
#include "simulator/engine/step_bounds.hpp"

namespace meshwright {

/// Facts about the job that evaluate() needs in addition to the graph.
struct JobFacts {
  Flops model_flops_per_step;
  std::int64_t tokens_per_step = 0;
  std::int64_t job_ranks = 1;
  FlopsPerSecond device_peak;
  Bytes memory_capacity;                         ///< of every device
  std::vector<Bytes> capacity_of_position = {};  ///< by pipeline rank, if they differ
  std::optional<StepInWindow> step = {};  ///< in a graph of several steps: the one to evaluate
};
/// Memory of the devices of a pipeline rank.
inline Bytes capacity_at(const JobFacts& job, std::size_t position) {
  return job.capacity_of_position.empty() ? job.memory_capacity
                                          : job.capacity_of_position[position];
}
/// For a step in a window, step_time, period and pipeline_makespan all equal the period of the
/// pipeline, optimizer updates count as pipeline work, and there is no warm-up or drain.
Evaluation evaluate(const TaskGraph& graph, std::span<const WorkPrice> prices,
                    const TaskTimes& times, const JobFacts& job);

/// Peak memory of every rank from the graph alone: the compute stream is serial, so the order of
/// acquisitions and releases does not depend on the times. O(tasks).
std::vector<MemoryAmounts> peak_memory_by_rank(const TaskGraph& graph);

}  // namespace meshwright
