/// What one step puts on every link of the cluster: messages between stages and all collectives, as
/// the simulator's own laws lay them on links (simulator/collective_load.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/link_network.hpp"
#include "gui/simulation.hpp"

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
  std::vector<LinkUse> links;            ///< by LinkId
  std::vector<std::size_t> busiest;      ///< in `links`: those that carry anything, fullest first
  std::vector<double> share_of_device;   ///< of the fuller direction of its own link, by device
  std::vector<double> share_of_network;  ///< of the fullest network port, by node; 0 without ports
};

/// Nothing where all ranks together have too many tasks to be looked at while a user waits. All
/// ranks are lowered: O(their tasks), with their memory.
std::optional<LinkUses> link_uses(const Simulation& simulation);

}  // namespace meshwright::gui
