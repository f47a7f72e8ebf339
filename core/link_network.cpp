#include "core/link_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.hpp"

namespace meshwright {
namespace {
/// Links of one device or port stand next to each other: out, then in.
constexpr std::int32_t kOut = 0, kIn = 1, kDirections = 2;
}  // namespace

LinkNetwork::LinkNetwork(const Cluster& cluster, int devices_used) {
  MW_CHECK(devices_used >= 1);
  MW_CHECK(devices_used <= device_count(cluster));
  BytesPerSecond all_ports;
  const auto add_pair = [this](const std::string& name, BytesPerSecond capacity) {
    links_.push_back({name + ".out", capacity});
    links_.push_back({name + ".in", capacity});
  };
  while (node_of_device_.size() < static_cast<std::size_t>(devices_used)) {
    const NodeModel& node = node_of(cluster, DeviceId(node_of_device_.size()));
    const std::size_t index = nodes_.size();
    NodePlace place;
    place.first_device = static_cast<std::int32_t>(node_of_device_.size());
    place.device_count = node.device_count;
    place.ports = node.ports;
    place.first_local_link = static_cast<std::int32_t>(links_.size());
    for (int d = 0; d < node.device_count; ++d)
      add_pair(fmt::format("node{}.device{}.local", index, d), node.local.bandwidth);
    place.first_port_link = static_cast<std::int32_t>(links_.size());
    for (int p = 0; p < node.ports; ++p) {
      add_pair(fmt::format("node{}.port{}", index, p), node.port_bandwidth);
      all_ports += node.port_bandwidth;
    }
    nodes_.push_back(place);
    node_of_device_.insert(node_of_device_.end(), static_cast<std::size_t>(node.device_count),
                           static_cast<std::int32_t>(index));
  }
  if (nodes_.size() > 1 && cluster.fabric.oversubscription > 1) {
    fabric_link_ = static_cast<std::int32_t>(links_.size());
    links_.push_back({"fabric", all_ports / cluster.fabric.oversubscription});
  }
}

std::vector<LinkId> LinkNetwork::route(DeviceId from, DeviceId to) const {
  MW_CHECK(from.value >= 0 && from.index() < node_of_device_.size());
  MW_CHECK(to.value >= 0 && to.index() < node_of_device_.size());
  if (from == to) return {};
  const std::int32_t from_node = node_of_device_[from.index()];
  const std::int32_t to_node = node_of_device_[to.index()];
  const auto local_link = [this](DeviceId device, std::int32_t node, std::int32_t direction) {
    const NodePlace& place = nodes_[static_cast<std::size_t>(node)];
    return LinkId(place.first_local_link + kDirections * (device.value - place.first_device) +
                  direction);
  };
  if (from_node == to_node)
    return {local_link(from, from_node, kOut), local_link(to, to_node, kIn)};

  const auto port_link = [this](DeviceId device, std::int32_t node, std::int32_t direction) {
    const NodePlace& place = nodes_[static_cast<std::size_t>(node)];
    MW_CHECK(place.ports > 0);
    const std::int64_t slot = device.value - place.first_device;
    const auto port = static_cast<std::int32_t>(slot * place.ports / place.device_count);
    return LinkId(place.first_port_link + kDirections * port + direction);
  };
  std::vector<LinkId> route{port_link(from, from_node, kOut)};
  if (fabric_link_ >= 0) route.push_back(LinkId(fabric_link_));
  route.push_back(port_link(to, to_node, kIn));
  return route;
}

}  // namespace meshwright
