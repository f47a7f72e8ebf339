/// The cluster's network as a graph of shared links, for simulation with contention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/units.hpp"
#include "core/cluster/cluster.hpp"

namespace meshwright {

struct Link {
  std::string name;  ///< "node3.port1.out", "node0.device2.local.in"
  BytesPerSecond capacity;
  friend bool operator==(const Link&, const Link&) = default;
};

/// The links of the used devices and the route of every ordered pair.
///   intra-node   the local ports of sender and receiver; in a PCIe tree also the uplinks of both
///                switches (if different) and the socket links of both sockets (if different)
///   inter-node   a network port of the sending node (device slot * ports / devices), uplink and
///                downlink of every fabric level that does not contain both nodes, the fabric if it
///                is oversubscribed, the receiver's port. With rails, the sender first forwards the
///                message to the device of its node on the receiver's rail.
/// An uplink or downlink is one link with the aggregate capacity of the switch's cables.
class LinkNetwork {
 public:
  /// `per_node`: devices used of every node (used_devices_per_node()); absent: all.
  LinkNetwork(const Cluster& cluster, int devices_used, std::optional<int> per_node = {});
  const std::vector<Link>& links() const { return links_; }
  std::vector<LinkId> route(DeviceId from, DeviceId to) const;
  NodeId node_of(DeviceId device) const { return NodeId(node_of_device_[device.index()]); }

 private:
  struct NodePlace {
    std::int32_t first_device = 0, device_count = 0, first_local_link = 0, first_port_link = 0;
    std::int32_t ports = 0;
    std::int32_t first_tree_link = -1, switches = 1, sockets = 1;  ///< PCIe tree; -1: none
  };
  /// One switch level: link pairs (up, down) by node group and rail.
  struct LevelPlace {
    std::int32_t first_link = 0, nodes = 1;
  };
  void add_pair(const std::string& name, BytesPerSecond capacity);
  void add_node(const NodeModel& node, std::int32_t first_device, int used);
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
  std::int32_t rails_ = 0;  ///< 0: all ports of a node connect to the same switches
  std::int32_t fabric_link_ = -1;
};

}  // namespace meshwright
