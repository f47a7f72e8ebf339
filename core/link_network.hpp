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

/// Links of the used devices and the route of every ordered pair. Inside a node a message leaves by
/// the sender's local port and enters by the receiver's; between nodes it leaves by a network port
/// of the sending node (device slot * ports / devices), passes the fabric if that is
/// oversubscribed, and enters by the receiver's port.
class LinkNetwork {
 public:
  LinkNetwork(const Cluster& cluster, int devices_used);
  const std::vector<Link>& links() const { return links_; }
  std::vector<LinkId> route(DeviceId from, DeviceId to) const;

 private:
  struct NodePlace {
    std::int32_t first_device = 0, device_count = 0, first_local_link = 0, first_port_link = 0;
    std::int32_t ports = 0;
  };
  std::vector<Link> links_;
  std::vector<NodePlace> nodes_;
  std::vector<std::int32_t> node_of_device_;
  std::int32_t fabric_link_ = -1;
};

}  // namespace meshwright
