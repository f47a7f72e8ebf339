/// Traffic of one step on every link of the cluster: messages between stages and all collectives,
/// distributed over links by the simulator's rules (simulator/network/collective_load.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cluster/link_network.hpp"
#include "gui/session/simulation.hpp"

namespace meshwright::gui {

/// One direction of one link.
struct LinkUse {
  std::string name;  ///< as LinkNetwork names it: "node0.device2.local.out"
  BytesPerSecond capacity;
  BytesPerSecond used;  ///< mean over a step
  double share() const { return used.value / capacity.value; }
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

struct LinkUses {
  std::vector<LinkUse> links;  ///< by LinkId
  std::vector<std::size_t>
      busiest;  ///< indices into `links` of links with traffic, highest utilization first
  std::vector<double>
      share_of_device;  ///< by device: utilization of the busier direction of its own link
  std::vector<double>
      share_of_network;  ///< by node: utilization of its busiest network port; 0 without ports
};

/// Lowers all ranks: time and memory O(tasks of all ranks). Returns nullopt if that would take too
/// long for an interactive program.
std::optional<LinkUses> link_uses(const Simulation& simulation);

}  // namespace meshwright::gui
