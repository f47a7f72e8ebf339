/// The engine: TaskGraph and prices → start and end of every task.
///
/// Without shared links it is one pass over the tasks in their (topological) order: a task starts
/// when its stream is free and its dependencies have ended. With shared links it is a
/// discrete-event loop in which transfers on the same link share it max-min fairly. Without
/// contention both give the same Ticks. Deterministic: integer time, ties broken by TaskId.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/timeline/timeline_of.hpp"
#include "simulator/engine/step_bounds.hpp"

namespace meshwright {

using SimulatedTimes = TaskTimes;

/// Linear pass; O(tasks + dependencies). Reuses the memory of `times`.
void simulate(const TaskGraph& graph, std::span<const WorkPrice> prices, SimulatedTimes& times);
SimulatedTimes simulate(const TaskGraph& graph, std::span<const WorkPrice> prices);
/// Uses `durations`, one per task, instead of the durations of the prices (variation.hpp);
/// latencies are unchanged. The durations of receives are ignored.
void simulate(const TaskGraph& graph, std::span<const WorkPrice> prices,
              std::span<const Ticks> durations, SimulatedTimes& times);

/// Discrete-event simulation; messages and collectives between devices share the links of `network`
/// max-min fairly. Alone, a message runs at bytes / occupancy of its price, and a collective takes
/// its price (collective_load.hpp). Collectives inside a compute task keep their price.
SimulatedTimes simulate_with_contention(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                        const LinkNetwork& network);

/// Latest end of any task.
Ticks makespan(const SimulatedTimes& times);

/// Facts about the job that evaluate() needs in addition to the graph.
struct JobFacts {
  Flops model_flops_per_step;
  std::int64_t tokens_per_step = 0;
  std::int64_t job_ranks = 1;
  FlopsPerSecond device_peak;
  Bytes memory_capacity;
  std::optional<StepInWindow> step = {};  ///< in a graph of several steps: the one to evaluate
};
/// For a step in a window, step_time, period and pipeline_makespan all equal the period of the
/// pipeline, optimizer updates count as pipeline work, and there is no warm-up or drain.
Evaluation evaluate(const TaskGraph& graph, std::span<const WorkPrice> prices,
                    const SimulatedTimes& times, const JobFacts& job);

/// Peak memory of every rank from the graph alone: the compute stream is serial, so the order of
/// acquisitions and releases does not depend on the times. O(tasks).
std::vector<MemoryAmounts> peak_memory_by_rank(const TaskGraph& graph);

}  // namespace meshwright
