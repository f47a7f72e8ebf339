/// The links that the messages and collectives of a graph share, and their ways over them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "core/graph/task_graph.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/network/collective_load.hpp"

namespace meshwright {

struct LinkPath {
  std::vector<LinkId> links;   ///< empty: the message shares no links
  std::vector<double> shares;  ///< by link: fraction of the message's rate; empty: 1
};

struct SharedLinks {
  std::vector<BytesPerSecond> capacities;  ///< by link
  /// From one rank to another (indices in TaskGraph::ranks).
  std::function<LinkPath(std::int32_t from, std::int32_t to)> message;
  /// Of a collective (index in TaskGraph::collectives) that alone takes `duration`, above zero.
  std::function<CollectiveLoad(std::int32_t collective, Ticks duration)> collective;
};

/// Those of the devices of its ranks. Refers to its arguments.
SharedLinks links_of(const TaskGraph& graph, const LinkNetwork& network);

/// As simulate_with_contention(graph, prices, network); uses `durations`, one per task, instead of
/// the durations of the prices, unless it is empty.
SimulatedTimes simulate_with_contention(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                        std::span<const Ticks> durations,
                                        const SharedLinks& shared);

}  // namespace meshwright
