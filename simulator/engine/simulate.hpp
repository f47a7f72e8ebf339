/// The engine: TaskGraph and prices → start and end of every task.
///
/// Without shared links it is one pass over the tasks in their (topological) order: a task starts
/// when its stream is free and its dependencies have ended. With shared links it is a
/// discrete-event loop in which transfers on the same link share it max-min fairly. Without
/// contention both give the same Ticks. Deterministic: integer time, ties broken by TaskId.
#pragma once

#include <span>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline_of.hpp"

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

}  // namespace meshwright
