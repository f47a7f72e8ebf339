/// The engine: TaskGraph and prices → start and end of every task.
///
/// Without shared links it is one pass over the tasks in their (topological) order: a task starts
/// when its stream is free and its dependencies have ended. With them it is a discrete-event loop
/// in which transfers that meet on a link share it max-min fairly. Where nothing meets, both give
/// the same Ticks. Deterministic: integer time, ties broken by TaskId.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/cost_model.hpp"
#include "core/evaluation.hpp"
#include "core/link_network.hpp"
#include "core/task_graph.hpp"
#include "core/timeline_of.hpp"
#include "simulator/step_bounds.hpp"

namespace meshwright {

using SimulatedTimes = TaskTimes;

/// Linear pass; O(tasks + dependencies). Reuses the memory of `times`.
void simulate(const TaskGraph& graph, std::span<const WorkPrice> prices, SimulatedTimes& times);
SimulatedTimes simulate(const TaskGraph& graph, std::span<const WorkPrice> prices);
/// With a duration for every task in place of the prices' (variation.hpp); latencies stay. A
/// receive has no duration of its own.
void simulate(const TaskGraph& graph, std::span<const WorkPrice> prices,
              std::span<const Ticks> durations, SimulatedTimes& times);

/// Discrete events; messages and collectives between devices share the links of `network` max-min
/// fairly. A message's own speed limit is bytes / occupancy of its price, a collective's that it
/// takes its price when alone (collective_load.hpp). Collectives inside a compute task keep their
/// price.
SimulatedTimes simulate_with_contention(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                        const LinkNetwork& network);

/// Largest end.
Ticks makespan(const SimulatedTimes& times);

/// What the figures need to know beside the graph.
struct JobFacts {
  Flops model_flops_per_step;
  std::int64_t tokens_per_step = 0;
  std::int64_t job_ranks = 1;
  FlopsPerSecond device_peak;
  Bytes memory_capacity;
  std::optional<StepInWindow> step = {};  ///< of a graph of several steps: the one that counts
};
/// Of a step in a window all times are its period: step_time, period and pipeline_makespan are the
/// same, updates count as work of the pipeline, and warm-up and drain belong to no step.
Evaluation evaluate(const TaskGraph& graph, std::span<const WorkPrice> prices,
                    const SimulatedTimes& times, const JobFacts& job);

/// Peak memory of every rank from the graph alone: the compute stream is serial, so the order of
/// acquisitions and releases does not depend on the times. O(tasks).
std::vector<MemoryAmounts> peak_memory_by_rank(const TaskGraph& graph);

}  // namespace meshwright
