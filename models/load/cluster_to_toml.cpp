#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/load/device_toml.hpp"
#include "models/load/load.hpp"
#include "models/text/toml_text.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::string_view, 4> kLocalKinds{"nvswitch", "nvlink-mesh", "pcie",
                                                      "shared-memory"};
constexpr std::array<std::string_view, 4> kCpuVendors{"intel", "amd", "arm", "other"};

std::string price_text(DollarsPerHour price) { return fmt::format("\"{} USD\"", price.value); }

class ClusterWriter {
 public:
  explicit ClusterWriter(const Cluster& cluster) : cluster_(cluster) {}

  std::string write() {
    out_ = fmt::format("schema = 1\nname = {}\n", toml_quoted(cluster_.name));
    for (const auto& [key, device] : cluster_.devices) {
      const std::string header = "devices." + key_text(key);
      out_ += fmt::format("\n[{}]\n", header) +
              device_text(device, {header, "devices." + key}, cluster_.sources);
    }
    for (const auto& [key, node] : cluster_.nodes) write_node(key, node);
    for (std::size_t i = 0; i < cluster_.groups.size(); ++i) {
      begin_item("groups", i);
      line("node", toml_quoted(cluster_.groups[i].node));
      line("count", cluster_.groups[i].count);
    }
    if (cluster_.fabric != Fabric{}) write_fabric(cluster_.fabric);
    end();
    return std::move(out_);
  }

 private:
  /// "[devices.a100.gemm]"; `path` is the prefix of its keys in TomlFindings::sources.
  void begin(std::string header, std::string path) {
    end();
    out_ += fmt::format("\n[{}]\n", header);
    path_ = std::move(path);
  }
  void begin_item(std::string_view array, std::size_t index) {
    end();
    out_ += fmt::format("\n[[{}]]\n", array);
    path_ = fmt::format("{}[{}]", array, index);
  }
  /// Sources of keys that are not written because they have their defaults.
  void end() {
    const std::string prefix = path_ + ".";
    for (auto i = cluster_.sources.lower_bound(prefix);
         i != cluster_.sources.end() && i->first.starts_with(prefix); ++i) {
      const std::string key = i->first.substr(prefix.size());
      const bool is_own = key.find_first_of(".[") == std::string::npos;
      if (is_own && std::find(written_.begin(), written_.end(), key) == written_.end())
        out_ += fmt::format("sources.{} = {}\n", key_text(key), toml_quoted(i->second));
    }
    written_.clear();
  }
  template <class Value>
  void line(std::string_view key, const Value& value) {
    out_ += fmt::format("{} = {}\n", key, value);
    const auto source = cluster_.sources.find(fmt::format("{}.{}", path_, key));
    if (source == cluster_.sources.end()) return;
    out_ += fmt::format("sources.{} = {}\n", key, toml_quoted(source->second));
    written_.emplace_back(key);
  }

  void write_node(const std::string& key, const NodeModel& node) {
    const std::string header = "nodes." + key_text(key), path = "nodes." + key;
    begin(header, path);
    line("name", toml_quoted(node.name));
    line("device", toml_quoted(node.device));
    line("device_count", node.device_count);
    line("ports", node.ports);
    if (node.port_bandwidth.value > 0) line("port_bandwidth", text_of(node.port_bandwidth));
    if (node.price_per_hour) line("price_per_hour", price_text(*node.price_per_hour));
    line("cpu", toml_quoted(kCpuVendors[static_cast<std::size_t>(node.cpu)]));
    if (node.device_count > 1 || node.local.bandwidth.value > 0)
      write_local(header, path, node.local);
    if (!node.host) return;
    begin(header + ".host", path + ".host");
    line("device_link", text_of(node.host->device_link));
    line("memory_bandwidth", text_of(node.host->memory_bandwidth));
  }

  void write_local(const std::string& header, const std::string& path, const LocalNetwork& local) {
    begin(header + ".local", path + ".local");
    line("kind", toml_quoted(kLocalKinds[static_cast<std::size_t>(local.kind)]));
    line("bandwidth", text_of(local.bandwidth));
    line("latency", text_of(local.latency));
    if (local.in_network_reduction) line("in_network_reduction", true);
    if (!local.tree) return;
    begin(header + ".local.tree", path + ".local.tree");
    line("switches", local.tree->switches);
    line("uplink", text_of(local.tree->uplink));
    if (local.tree->sockets == 1) return;
    line("sockets", local.tree->sockets);
    line("socket_link", text_of(local.tree->socket_link));
  }

  void write_fabric(const Fabric& fabric) {
    begin("fabric", "fabric");
    line("latency", text_of(fabric.latency));
    line("oversubscription", fabric.oversubscription);
    if (fabric.rails) line("rails", true);
    for (std::size_t l = 0; l < fabric.levels.size(); ++l) {
      begin_item("fabric.levels", l);
      line("nodes", fabric.levels[l].nodes);
      line("oversubscription", fabric.levels[l].oversubscription);
    }
    if (fabric.collectives != NetworkParameters{}) write_network(fabric.collectives);
  }

  void write_network(const NetworkParameters& network) {
    begin("fabric.collectives", "fabric.collectives");
    const NetworkParameters plain;
    if (network.base != plain.base) line("base", text_of(network.base));
    line("hop", network.hop);
    line("bandwidth", network.bandwidth);
    line("all_to_all", network.all_to_all);
    if (network.blend) line("blend", *network.blend);
  }

  const Cluster& cluster_;
  std::string out_, path_;
  std::vector<std::string> written_;  ///< keys of this table whose source is written
};

}  // namespace

std::string cluster_to_toml(const Cluster& cluster, const std::vector<std::string>& notes) {
  return toml_comment(notes) + ClusterWriter(cluster).write();
}

}  // namespace meshwright
