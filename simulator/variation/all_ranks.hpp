/// A step of all ranks, with stragglers and shared links. Replicas that nothing tells apart
/// (engine/replica_classes.hpp) are simulated once; every rank gets its own times.
#pragma once

#include <span>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "core/cost/cost_model.hpp"
#include "core/lowering/replicated_graph.hpp"
#include "core/timeline/timeline_of.hpp"
#include "simulator/variation/variation.hpp"

namespace meshwright {

struct SimulatedReplicas {
  ReplicaClasses classes;
  ClassGraph graph;
  TaskTimes times;  ///< of the tasks of `graph`
};

/// `network`: messages and collectives share its links; null: they do not. The times of a task are
/// those of simulate() or simulate_with_contention() on the graph of all ranks. Each straggler that
/// differs from the others adds a few replicas to simulate.
SimulatedReplicas simulate_replicas(const ReplicatedGraph& all, std::span<const WorkPrice> prices,
                                    std::span<const Straggler> stragglers,
                                    const LinkNetwork* network);

/// Times of every task of every rank, in the order of unfold(): 16 bytes per task.
TaskTimes times_of_all_ranks(const ReplicatedGraph& all, const SimulatedReplicas& simulated);

}  // namespace meshwright
