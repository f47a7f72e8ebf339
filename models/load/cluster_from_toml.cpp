#include <fmt/format.h>

#include "core/cluster/visit_collective_parameters.hpp"
#include "models/load/device_toml.hpp"
#include "models/load/load.hpp"
#include "models/load/resolve_references.hpp"
#include "models/load/this_machine.hpp"
#include "models/text/parameter_reader.hpp"
#include "models/text/toml_reader.hpp"

namespace meshwright {
namespace {

constexpr int kSchema = 1;
constexpr int kMostOfAnything = 1 << 24;  ///< devices, nodes, ports

LocalNetwork read_local_network(TomlReader& reader) {
  static const std::vector<std::string> kKinds{"nvswitch", "nvlink-mesh", "pcie", "shared-memory"};
  LocalNetwork local;
  local.kind = static_cast<LocalNetworkKind>(reader.choice("kind", kKinds, 0));
  local.bandwidth = reader.bandwidth("bandwidth");
  local.latency = reader.seconds("latency");
  local.in_network_reduction = reader.flag("in_network_reduction", false);
  reader.table("tree", false, [&](TomlReader& r) {
    PcieTree tree;
    tree.switches = r.whole_number("switches", 1, kMostOfAnything);
    tree.sockets = r.whole_number("sockets", 1, kMostOfAnything, 1);
    tree.uplink = r.bandwidth("uplink");
    if (tree.sockets > 1) tree.socket_link = r.bandwidth("socket_link");
    local.tree = tree;
  });
  return local;
}

NodeModel read_node(const std::string& key, TomlReader& reader) {
  static const std::vector<std::string> kVendors{"intel", "amd", "arm", "other"};
  NodeModel node;
  node.name = reader.text("name", key);
  node.device = reader.text("device");
  node.device_count = reader.whole_number("device_count", 1, kMostOfAnything);
  node.ports = reader.whole_number("ports", 0, kMostOfAnything, 0);
  if (node.ports > 0 || reader.has("port_bandwidth"))
    node.port_bandwidth = reader.bandwidth("port_bandwidth");
  node.price_per_hour = reader.price("price_per_hour");
  node.cpu = static_cast<CpuVendor>(reader.choice("cpu", kVendors, 0));
  reader.table("local", node.device_count > 1,
               [&](TomlReader& r) { node.local = read_local_network(r); });
  reader.table("host", false, [&](TomlReader& r) {
    node.host = HostModel{.device_link = r.bandwidth("device_link"),
                          .memory_bandwidth = r.bandwidth("memory_bandwidth")};
  });
  return node;
}

Fabric read_fabric(TomlReader& reader) {
  constexpr double kMostOversubscribed = 1e6;
  const auto oversubscription = [&](TomlReader& r) {
    return r.number("oversubscription", kMostOversubscribed, 1.0);
  };
  Fabric fabric;
  fabric.latency = reader.seconds("latency");
  fabric.oversubscription = oversubscription(reader);
  fabric.rails = reader.flag("rails", false);
  reader.table("collectives", false, [&](TomlReader& r) {
    visit_parameters_of_network(fabric.collectives, ParameterReader{r});
  });
  if (reader.has("levels"))
    reader.array("levels", [&](TomlReader& r) {
      FabricLevel level;
      level.nodes = r.whole_number("nodes", 1, kMostOfAnything);
      level.oversubscription = oversubscription(r);
      fabric.levels.push_back(level);
    });
  return fabric;
}

/// Files of earlier versions state errors of predictions; `meshwright validate` finds them now.
void skip_validation(TomlReader& reader) {
  for (const char* key : {"runs", "mean_error", "worst_error"}) reader.has(key);
}

Cluster read_cluster(const std::string& name, TomlReader& reader) {
  Cluster cluster;
  reader.whole_number("schema", kSchema, kSchema);
  cluster.name = reader.text("name", name);
  reader.tables("devices", [&](const std::string& key, TomlReader& r) {
    cluster.devices[key] = read_device(key, r);
  });
  reader.tables("nodes", [&](const std::string& key, TomlReader& r) {
    cluster.nodes[key] = read_node(key, r);
  });
  reader.array("groups", [&](TomlReader& r) {
    NodeGroup group;
    group.node = r.text("node");
    group.count = r.whole_number("count", 1, kMostOfAnything);
    cluster.groups.push_back(std::move(group));
  });
  reader.table("fabric", false, [&](TomlReader& r) { cluster.fabric = read_fabric(r); });
  reader.table("validation", false, skip_validation);
  return cluster;
}

Cluster read_resolved_cluster(const NamedText& toml, const toml::table& table) {
  Cluster cluster;
  cluster.sources = read_toml(
      table, toml.where, [&](TomlReader& reader) { cluster = read_cluster(toml.name, reader); });
  throw_if_any(check_cluster(cluster, fmt::format("{}: ", toml.where)));
  return cluster;
}

}  // namespace

Cluster cluster_from_toml(const NamedText& toml) {
  return read_resolved_cluster(toml, resolve_cluster(toml, References::kPresets).table);
}

NamedText find_cluster(const std::string& name_or_path) {
  if (name_or_path == kThisMachine) return this_machine_cluster(this_machine_calibration());
  NamedText found = find_cluster_file(name_or_path);
  const ResolvedToml resolved = resolve_cluster(found, References::kPresetsAndFiles);
  if (resolved.had_references)
    found.text = cluster_to_toml(read_resolved_cluster(found, resolved.table));
  return found;
}

}  // namespace meshwright
