/// Traffic of one step on every link of the cluster: messages between stages and all collectives,
/// distributed over links as in simulator/network/collective_load.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/cluster/cluster.hpp"
#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// One direction of one link.
struct LinkUse {
  std::string name;  ///< as LinkNetwork names it: "node0.device2.local.out"
  BytesPerSecond capacity;
  BytesPerSecond used;  ///< mean over a step
  double share() const { return used.value / capacity.value; }
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

struct LinkUses {
  std::vector<LinkUse> links;            ///< by LinkId
  std::vector<std::size_t> busiest;      ///< links with traffic, highest utilization first
  std::vector<double> share_of_device;   ///< by device: the busier direction of its own link
  std::vector<double> share_of_network;  ///< by node: its busiest network port; 0 without ports
};

/// Lowers all ranks: time and memory O(tasks of all ranks).
LinkUses link_uses(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                   Ticks step_time);

/// About as many tasks as the graph of all `ranks` has, from a graph of some of them.
std::int64_t task_count_of_all_ranks(const TaskGraph& graph, std::int64_t ranks);

}  // namespace meshwright
