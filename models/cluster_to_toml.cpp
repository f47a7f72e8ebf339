#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/parse_quantity.hpp"
#include "models/import.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::string_view, 4> kLocalKinds{"nvswitch", "nvlink-mesh", "pcie",
                                                      "shared-memory"};
constexpr std::array<std::string_view, 4> kCpuVendors{"intel", "amd", "arm", "other"};

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string key_text(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return bare ? std::string(key) : toml_quoted(key);
}

/// The shortest text in the customary unit if it reads back exactly, else in base units.
struct UnitText {
  double factor;
  std::string_view name, base;
};
constexpr UnitText kRate{1e9, "GB/s", "B/s"}, kFlopRate{1e12, "TFLOP/s", "FLOP/s"},
    kTime{1e6, "us", "s"};

template <class Parse>
std::string quantity(double value, double in_unit, const UnitText& unit, Parse parse) {
  const std::string text = fmt::format("{} {}", in_unit, unit.name);
  try {
    if (parse(text, "").value == value) return toml_quoted(text);
  } catch (const InputError&) {  // more digits than a quantity allows
  }
  return toml_quoted(fmt::format("{} {}", value, unit.base));
}
std::string text_of(BytesPerSecond rate) {
  return quantity(rate.value, rate.value / kRate.factor, kRate, parse_bandwidth);
}
std::string text_of(FlopsPerSecond rate) {
  return quantity(rate.value, rate.value / kFlopRate.factor, kFlopRate, parse_flop_rate);
}
std::string text_of(Seconds time) {
  return quantity(time.value, time.value * kTime.factor, kTime, parse_seconds);
}
std::string text_of(DollarsPerHour price) { return fmt::format("\"{} USD\"", price.value); }
std::string text_of(Bytes bytes) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30, kKiB = 1 << 10;
  if (bytes.value % kGiB == 0) return fmt::format("\"{} GiB\"", bytes.value / kGiB);
  if (bytes.value % kKiB == 0) return fmt::format("\"{} KiB\"", bytes.value / kKiB);
  return fmt::format("\"{} B\"", bytes.value);
}

class ClusterWriter {
 public:
  explicit ClusterWriter(const Cluster& cluster) : cluster_(cluster) {}

  std::string write() {
    out_ = fmt::format("schema = 1\nname = {}\n", toml_quoted(cluster_.name));
    for (const auto& [key, device] : cluster_.devices) write_device(key, device);
    for (const auto& [key, node] : cluster_.nodes) write_node(key, node);
    for (std::size_t i = 0; i < cluster_.groups.size(); ++i) {
      begin_item("groups", i);
      line("node", toml_quoted(cluster_.groups[i].node));
      line("count", cluster_.groups[i].count);
    }
    if (cluster_.fabric != Fabric{}) write_fabric(cluster_.fabric);
    if (cluster_.validation) write_validation(*cluster_.validation);
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

  /// Zero is the reader's default for an absent key, and not a value that it accepts.
  template <class Quantity>
  void line_unless_zero(std::string_view key, Quantity value) {
    if (value != Quantity()) line(key, text_of(value));
  }

  void write_device(const std::string& key, const DeviceModel& device) {
    const std::string header = "devices." + key_text(key), path = "devices." + key;
    begin(header, path);
    line("name", toml_quoted(device.name));
    line("memory", text_of(device.memory));
    line_unless_zero("reserved_memory", device.reserved_memory);
    if (device.kernels == KernelLibrary::kOwn) line("kernels", toml_quoted("own"));
    line("memory_bandwidth", text_of(device.memory_bandwidth));
    line("launch_overhead", text_of(device.launch_overhead));
    line("multiprocessors", device.multiprocessors);
    if (device.compute_capability) line("compute_capability", *device.compute_capability);
    begin(header + ".peak", path + ".peak");
    for (std::size_t i = 0; i < device.peak.size(); ++i)
      if (device.peak[i]) line(name_of(static_cast<Dtype>(i)), text_of(*device.peak[i]));
    begin(header + ".gemm", path + ".gemm");
    line("max_efficiency", device.gemm.max_efficiency);
    line("tile_m", device.gemm.tile_m);
    line("tile_n", device.gemm.tile_n);
    line_unless_zero("ramp", device.gemm.ramp);
    begin(header + ".memory_efficiency", path + ".memory_efficiency");
    line("max_efficiency", device.memory_efficiency.max_efficiency);
    line_unless_zero("half_speed_bytes", device.memory_efficiency.half_speed_bytes);
    begin(header + ".attention", path + ".attention");
    line("forward", device.attention.forward);
    line("backward", device.attention.backward);
  }

  void write_node(const std::string& key, const NodeModel& node) {
    const std::string header = "nodes." + key_text(key), path = "nodes." + key;
    begin(header, path);
    line("name", toml_quoted(node.name));
    line("device", toml_quoted(node.device));
    line("device_count", node.device_count);
    line("ports", node.ports);
    if (node.port_bandwidth.value > 0) line("port_bandwidth", text_of(node.port_bandwidth));
    if (node.price_per_hour) line("price_per_hour", text_of(*node.price_per_hour));
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
  }

  void write_validation(const PublishedRuns& validation) {
    begin("validation", "validation");
    line("runs", validation.runs);
    line("mean_error", validation.mean_error);
    line("worst_error", validation.worst_error);
  }

  const Cluster& cluster_;
  std::string out_, path_;
  std::vector<std::string> written_;  ///< keys of this table whose source is written
};

}  // namespace

std::string cluster_to_toml(const Cluster& cluster, const std::vector<std::string>& notes) {
  std::string text;
  for (std::string note : notes) {
    for (char& c : note)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    text += "# " + note + "\n";
  }
  return text + ClusterWriter(cluster).write();
}

}  // namespace meshwright
