#include "core/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/check.hpp"
#include "core/cluster/figure_checks.hpp"
#include "core/cluster/visit_collective_parameters.hpp"

namespace meshwright {
namespace {

/// Far beyond real clusters; keeps device indices and their products in range.
constexpr std::int64_t kMostDevices = 1 << 24;

class ClusterChecks : private FigureChecks {
 public:
  ClusterChecks(const Cluster& cluster, const std::string& where)
      : FigureChecks(where), cluster_(cluster) {}

  std::vector<Diagnostic> run() {
    for (const auto& [key, device] : cluster_.devices) {
      std::vector<Diagnostic> found = check_device(device, prefix_ + "devices." + key);
      found_.insert(found_.end(), found.begin(), found.end());
    }
    for (const auto& [key, node] : cluster_.nodes) check_node("nodes." + key, node);
    check_groups();
    check_fabric();
    return std::move(found_);
  }

 private:
  void check_node(const std::string& place, const NodeModel& node) {
    if (!cluster_.devices.contains(node.device)) {
      std::vector<std::string> known;
      for (const auto& entry : cluster_.devices) known.push_back(entry.first);
      report(place + ".device", fmt::format("unknown device '{}'", node.device),
             suggest(node.device, known));
    }
    if (node.device_count < 1 || node.device_count > kMostDevices)
      report(place + ".device_count",
             fmt::format("must be between 1 and {}, got {}", kMostDevices, node.device_count), "");
    if (node.device_count > 1) {
      need_positive(place + ".local.bandwidth", node.local.bandwidth.value, "rate");
      need_not_negative(place + ".local.latency", node.local.latency.value, "time");
    }
    if (node.local.tree) check_tree(place, node);
    if (node.ports < 0 || node.ports > kMostDevices)
      report(place + ".ports",
             fmt::format("must be between 0 and {}, got {}", kMostDevices, node.ports),
             "use 0 for a single node without a network");
    if (node.ports > 0) need_positive(place + ".port_bandwidth", node.port_bandwidth.value, "rate");
    if (node.host) {
      need_positive(place + ".host.device_link", node.host->device_link.value, "rate");
      need_positive(place + ".host.memory_bandwidth", node.host->memory_bandwidth.value, "rate");
    }
  }

  void check_tree(const std::string& node_place, const NodeModel& node) {
    const std::string place = node_place + ".local.tree";
    const PcieTree& tree = *node.local.tree;
    if (node.local.kind != LocalNetworkKind::kPcie)
      report(place, "requires local.kind = \"pcie\"",
             "remove the PCIe tree, or set local.kind = \"pcie\"");
    if (tree.switches < 1 || node.device_count % std::max(1, tree.switches) != 0)
      report(place + ".switches",
             fmt::format("{} switches do not divide the {} devices of the node", tree.switches,
                         node.device_count),
             "use a divisor of the number of devices");
    if (tree.sockets < 1 || tree.switches % std::max(1, tree.sockets) != 0)
      report(place + ".sockets",
             fmt::format("{} sockets do not divide the {} switches of the node", tree.sockets,
                         tree.switches),
             "use a divisor of the number of switches");
    need_positive(place + ".uplink", tree.uplink.value, "rate");
    if (tree.sockets > 1) need_positive(place + ".socket_link", tree.socket_link.value, "rate");
  }

  void check_groups() {
    if (cluster_.groups.empty())
      report("groups", "must not be empty", "add at least one group of nodes");
    std::int64_t nodes = 0, devices = 0;
    for (std::size_t i = 0; i < cluster_.groups.size(); ++i) {
      const NodeGroup& group = cluster_.groups[i];
      const std::string place = fmt::format("groups[{}]", i);
      if (group.count < 1)
        report(place + ".count", fmt::format("must be at least 1, got {}", group.count), "");
      const auto node = cluster_.nodes.find(group.node);
      if (node == cluster_.nodes.end()) {
        std::vector<std::string> known;
        for (const auto& entry : cluster_.nodes) known.push_back(entry.first);
        report(place + ".node", fmt::format("unknown node '{}'", group.node),
               suggest(group.node, known));
        continue;
      }
      nodes += std::max(group.count, 0);
      devices += std::int64_t{std::max(group.count, 0)} * std::max(node->second.device_count, 0);
    }
    if (devices > kMostDevices)
      report("groups", fmt::format("{} devices exceed the maximum of {}", devices, kMostDevices),
             "reduce the counts");
    if (nodes > 1) check_nodes_have_ports();
  }

  void check_nodes_have_ports() {
    for (const NodeGroup& group : cluster_.groups) {
      const auto node = cluster_.nodes.find(group.node);
      if (node == cluster_.nodes.end() || node->second.ports != 0) continue;
      report("nodes." + group.node + ".ports",
             "must be at least 1 in a cluster of several nodes, got 0",
             "give the number of network ports, or use a single node");
    }
  }

  /// Written so that NaN fails too.
  void check_oversubscription(const std::string& place, double value) {
    if (value >= 1 && value <= std::numeric_limits<double>::max()) return;
    report(
        place, fmt::format("must be at least 1, got {}", value),
        "give the ratio of bandwidth below to bandwidth above the switches; 1 is full bisection");
  }

  void check_fabric() {
    const Fabric& fabric = cluster_.fabric;
    need_not_negative("fabric.latency", fabric.latency.value, "time");
    check_oversubscription("fabric.oversubscription", fabric.oversubscription);
    visit_parameters_of_network(
        fabric.collectives,
        BoundsCheck{[this](std::string_view key, std::string what, std::string hint) {
          report(fmt::format("fabric.collectives.{}", key), std::move(what), std::move(hint));
        }});
    int below = 1;
    for (std::size_t l = 0; l < fabric.levels.size(); ++l) {
      const FabricLevel& level = fabric.levels[l];
      const std::string place = fmt::format("fabric.levels[{}]", l);
      if (level.nodes < 2 || level.nodes <= below || level.nodes % below != 0)
        report(place + ".nodes",
               fmt::format("must be a larger multiple of the {} nodes of the level below, got {}",
                           below, level.nodes),
               "count all nodes below one switch of this level");
      check_oversubscription(place + ".oversubscription", level.oversubscription);
      below = std::max(level.nodes, 1);
    }
  }

  const Cluster& cluster_;
};

/// The node of a device.
struct DevicePlace {
  const NodeModel* node = nullptr;
  std::int32_t node_index = 0;
};

DevicePlace place_of(const Cluster& cluster, DeviceId device) {
  MW_CHECK(device.value >= 0);
  std::int32_t left = device.value;
  std::int32_t first_node = 0;
  for (const NodeGroup& group : cluster.groups) {
    const NodeModel& node = cluster.nodes.at(group.node);
    const std::int64_t in_group = std::int64_t{group.count} * node.device_count;
    if (left < in_group) return {&node, first_node + left / node.device_count};
    left -= static_cast<std::int32_t>(in_group);
    first_node += group.count;
  }
  MW_CHECK(!"the device is in the cluster");
  return {};
}

}  // namespace

std::vector<Diagnostic> check_cluster(const Cluster& cluster, const std::string& where) {
  return ClusterChecks(cluster, where).run();
}

int device_count(const Cluster& cluster) {
  int count = 0;
  for (const NodeGroup& group : cluster.groups)
    count += group.count * cluster.nodes.at(group.node).device_count;
  return count;
}

const NodeModel& node_of(const Cluster& cluster, DeviceId device) {
  return *place_of(cluster, device).node;
}

const DeviceModel& device_of(const Cluster& cluster, DeviceId device) {
  return cluster.devices.at(node_of(cluster, device).device);
}

NodeId node_index_of(const Cluster& cluster, DeviceId device) {
  return NodeId(place_of(cluster, device).node_index);
}

std::optional<int> used_devices_per_node(const Cluster& cluster, std::int64_t ranks) {
  const int all = node_of(cluster, DeviceId(0)).device_count;
  if (!is_homogeneous(cluster) || ranks <= all || ranks % all == 0) return all;
  int used = all - all % 2;
  while (used > 0 && ranks % used != 0) used -= 2;
  const std::int64_t nodes = device_count(cluster) / all;
  if (used == 0 || ranks / used > nodes) return std::nullopt;
  return used;
}

NodeId node_index_in_job(const Cluster& cluster, std::int64_t ranks, DeviceId device) {
  if (!is_homogeneous(cluster)) return node_index_of(cluster, device);
  const std::optional<int> used = used_devices_per_node(cluster, ranks);
  MW_CHECK(used.has_value());
  return NodeId(device.value / *used);
}

bool is_homogeneous(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    return group.node == cluster.groups.front().node;
  });
}

}  // namespace meshwright
