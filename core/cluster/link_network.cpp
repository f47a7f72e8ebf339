#include "core/cluster/link_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {
/// The links of one device, port or switch are adjacent: out (up), then in (down).
constexpr std::int32_t kOut = 0, kIn = 1, kDirections = 2;

std::int32_t size_of(const std::vector<Link>& links) {
  return static_cast<std::int32_t>(links.size());
}

/// Total port bandwidth (of one rail, or of all) over a range of nodes.
BytesPerSecond total(const std::vector<BytesPerSecond>& ports_by_node, std::size_t first,
                     std::size_t last) {
  BytesPerSecond sum;
  for (std::size_t n = first; n < std::min(last, ports_by_node.size()); ++n)
    sum += ports_by_node[n];
  return sum;
}
}  // namespace

void LinkNetwork::add_pair(const std::string& name, BytesPerSecond capacity) {
  links_.push_back({name + ".out", capacity});
  links_.push_back({name + ".in", capacity});
}

LinkNetwork::LinkNetwork(const Cluster& cluster, int devices_used, std::optional<int> per_node) {
  MW_CHECK(devices_used >= 1);
  MW_CHECK(devices_used <= device_count(cluster));
  std::vector<BytesPerSecond> ports;  // by node
  std::int32_t passed = 0;            // devices of earlier nodes, used or not
  while (node_of_device_.size() < static_cast<std::size_t>(devices_used)) {
    const NodeModel& node = meshwright::node_of(cluster, DeviceId(passed));
    passed += node.device_count;
    ports.push_back(node.port_bandwidth * static_cast<double>(node.ports));
    rails_ = std::max(rails_, cluster.fabric.rails ? node.ports : 0);
    add_node(node, static_cast<std::int32_t>(node_of_device_.size()),
             std::min(per_node.value_or(node.device_count), node.device_count));
  }
  if (nodes_.size() > 1) add_levels(cluster, ports);
}

void LinkNetwork::add_node(const NodeModel& node, std::int32_t first_device, int used) {
  const std::size_t index = nodes_.size();
  NodePlace place;
  place.first_device = first_device;
  place.device_count = node.device_count;
  place.ports = node.ports;
  place.first_local_link = size_of(links_);
  for (int d = 0; d < node.device_count; ++d)
    add_pair(fmt::format("node{}.device{}.local", index, d), node.local.bandwidth);
  place.first_port_link = size_of(links_);
  for (int p = 0; p < node.ports; ++p)
    add_pair(fmt::format("node{}.port{}", index, p), node.port_bandwidth);
  if (node.local.tree) add_tree(node, place);
  nodes_.push_back(place);
  node_of_device_.insert(node_of_device_.end(), static_cast<std::size_t>(used),
                         static_cast<std::int32_t>(index));
}

/// Switches first, then sockets.
void LinkNetwork::add_tree(const NodeModel& node, NodePlace& place) {
  const PcieTree& tree = *node.local.tree;
  place.first_tree_link = size_of(links_);
  place.switches = tree.switches;
  place.sockets = tree.sockets;
  for (int s = 0; s < tree.switches; ++s)
    add_pair(fmt::format("node{}.switch{}", nodes_.size(), s), tree.uplink);
  if (tree.sockets == 1) return;
  for (int s = 0; s < tree.sockets; ++s)
    add_pair(fmt::format("node{}.socket{}", nodes_.size(), s), tree.socket_link);
}

void LinkNetwork::add_levels(const Cluster& cluster, const std::vector<BytesPerSecond>& ports) {
  const std::int32_t rails = std::max(1, rails_);
  for (std::size_t l = 0; l < cluster.fabric.levels.size(); ++l) {
    const FabricLevel& level = cluster.fabric.levels[l];
    levels_.push_back({.first_link = size_of(links_), .nodes = level.nodes});
    const auto size = static_cast<std::size_t>(level.nodes);
    for (std::size_t first = 0, group = 0; first < ports.size(); first += size, ++group)
      for (std::int32_t rail = 0; rail < rails; ++rail) {
        const std::string name = fmt::format("level{}.group{}", l, group);
        add_pair(rails == 1 ? name : fmt::format("{}.rail{}", name, rail),
                 total(ports, first, first + size) / (level.oversubscription * rails));
      }
  }
  if (cluster.fabric.oversubscription > 1) {
    fabric_link_ = size_of(links_);
    links_.push_back({"fabric", total(ports, 0, ports.size()) / cluster.fabric.oversubscription});
  }
}

void LinkNetwork::add_local_route(DeviceId from, DeviceId to, std::vector<LinkId>& route) const {
  const NodePlace& place = nodes_[static_cast<std::size_t>(node_of_device_[from.index()])];
  const auto link = [](std::int32_t first, std::int32_t number, std::int32_t direction) {
    return LinkId(first + kDirections * number + direction);
  };
  const std::int32_t a = from.value - place.first_device, b = to.value - place.first_device;
  route.push_back(link(place.first_local_link, a, kOut));
  if (place.first_tree_link >= 0) {
    const auto part_of = [&](std::int32_t slot, std::int32_t parts) {
      return static_cast<std::int32_t>(std::int64_t{slot} * parts / place.device_count);
    };
    const std::int32_t from_switch = part_of(a, place.switches);
    const std::int32_t to_switch = part_of(b, place.switches);
    const std::int32_t from_socket = part_of(a, place.sockets);
    const std::int32_t to_socket = part_of(b, place.sockets);
    const std::int32_t first_socket = place.first_tree_link + kDirections * place.switches;
    if (from_switch != to_switch) route.push_back(link(place.first_tree_link, from_switch, kOut));
    if (from_socket != to_socket) {
      route.push_back(link(first_socket, from_socket, kOut));
      route.push_back(link(first_socket, to_socket, kIn));
    }
    if (from_switch != to_switch) route.push_back(link(place.first_tree_link, to_switch, kIn));
  }
  route.push_back(link(place.first_local_link, b, kIn));
}

std::int32_t LinkNetwork::port_of(DeviceId device) const {
  const NodePlace& place = nodes_[static_cast<std::size_t>(node_of_device_[device.index()])];
  MW_CHECK(place.ports > 0);
  const std::int64_t slot = device.value - place.first_device;
  return static_cast<std::int32_t>(slot * place.ports / place.device_count);
}

std::vector<LinkId> LinkNetwork::route(DeviceId from, DeviceId to) const {
  MW_CHECK(from.value >= 0 && from.index() < node_of_device_.size());
  MW_CHECK(to.value >= 0 && to.index() < node_of_device_.size());
  if (from == to) return {};
  const std::int32_t from_node = node_of_device_[from.index()];
  const std::int32_t to_node = node_of_device_[to.index()];
  std::vector<LinkId> route;
  if (from_node == to_node) {
    add_local_route(from, to, route);
    return route;
  }
  const NodePlace& sender = nodes_[static_cast<std::size_t>(from_node)];
  const NodePlace& receiver = nodes_[static_cast<std::size_t>(to_node)];
  std::int32_t out_port = port_of(from);
  const std::int32_t in_port = port_of(to);
  if (rails_ > 0 && out_port != in_port && in_port < sender.ports) {
    // The first device of the node on the receiver's rail.
    const std::int32_t slot = (in_port * sender.device_count + sender.ports - 1) / sender.ports;
    const DeviceId proxy(sender.first_device + slot);
    if (proxy != from) add_local_route(from, proxy, route);
    out_port = in_port;
  }
  route.emplace_back(sender.first_port_link + kDirections * out_port + kOut);
  add_fabric_route(from_node, to_node, rails_ > 0 ? in_port : 0, route);
  route.emplace_back(receiver.first_port_link + kDirections * in_port + kIn);
  return route;
}

/// Up level by level until one switch contains both nodes, then down again.
void LinkNetwork::add_fabric_route(std::int32_t from_node, std::int32_t to_node, std::int32_t rail,
                                   std::vector<LinkId>& route) const {
  const std::int32_t rails = std::max(1, rails_);
  std::vector<LinkId> down;
  for (const LevelPlace& level : levels_) {
    const std::int32_t up_group = from_node / level.nodes, down_group = to_node / level.nodes;
    if (up_group == down_group) break;
    const auto link = [&](std::int32_t group, std::int32_t direction) {
      return LinkId(level.first_link + kDirections * (group * rails + rail) + direction);
    };
    route.push_back(link(up_group, kOut));
    down.push_back(link(down_group, kIn));
  }
  if (fabric_link_ >= 0) route.emplace_back(fabric_link_);
  route.insert(route.end(), down.rbegin(), down.rend());
}

}  // namespace meshwright
