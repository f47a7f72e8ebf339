/// The cluster's wires as a graph of shared links, for simulation with contention.
#pragma once

#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace meshwright {

struct Link {
  std::string name;  ///< "node3.port1.out", "node0.device2.local.in"
  BytesPerSecond capacity;
  friend bool operator==(const Link&, const Link&) = default;
};

/// Links of the used devices and the route of every ordered pair.
///   inside a node   the sender's local port, the receiver's; in a PCIe tree between two switches
///                   also the way up from one and down to the other, and between two sockets the
///                   links of both
///   between nodes   a network port of the sending node (device slot * ports / devices), the way up
///                   and down of every fabric level that does not hold both nodes, the fabric if it
///                   is oversubscribed, the receiver's port. On rails, the sender first passes the
///                   message on to the device of its node that has the receiver's rail.
/// Ways up and down are one link each: what a switch's cables carry together.
class LinkNetwork {
 public:
  LinkNetwork(const Cluster& cluster, int devices_used);
  const std::vector<Link>& links() const { return links_; }
  std::vector<LinkId> route(DeviceId from, DeviceId to) const;
  NodeId node_of(DeviceId device) const { return NodeId(node_of_device_[device.index()]); }

 private:
  struct NodePlace {
    std::int32_t first_device = 0, device_count = 0, first_local_link = 0, first_port_link = 0;
    std::int32_t ports = 0;
    std::int32_t first_tree_link = -1, switches = 1, sockets = 1;  ///< PCIe tree: -1: none
  };
  /// Switches of one level: link pairs (up, down) by group of nodes and rail.
  struct LevelPlace {
    std::int32_t first_link = 0, nodes = 1;
  };
  void add_pair(const std::string& name, BytesPerSecond capacity);
  void add_node(const NodeModel& node, std::int32_t first_device);
  void add_tree(const NodeModel& node, NodePlace& place);
  void add_levels(const Cluster& cluster, const std::vector<BytesPerSecond>& ports);
  void add_local_route(DeviceId from, DeviceId to, std::vector<LinkId>& route) const;
  void add_fabric_route(std::int32_t from_node, std::int32_t to_node, std::int32_t rail,
                        std::vector<LinkId>& route) const;
  std::int32_t port_of(DeviceId device) const;
  std::vector<Link> links_;
  std::vector<NodePlace> nodes_;
  std::vector<std::int32_t> node_of_device_;
  std::vector<LevelPlace> levels_;
  std::int32_t rails_ = 0;  ///< 0: all ports of a node lead to the same switches
  std::int32_t fabric_link_ = -1;
};

}  // namespace meshwright
