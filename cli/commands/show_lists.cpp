/// Pages that list all models, clusters, devices or schedules.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands/show_pages.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

Page page_of(const char* key, const Json& entries, const Table& table) {
  constexpr int kIndent = 2;
  return {table, Json{{"schema", 1}, {key, entries}}.dump(kIndent) + "\n"};
}

/// Dense peak of bf16 or fp16, or of fp32 if the device has neither.
std::optional<FlopsPerSecond> peak_of(const DeviceModel& device) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kFp32})
    if (const auto& peak = device.peak[static_cast<std::size_t>(dtype)]) return peak;
  return std::nullopt;
}

/// "scaled from h100-sxm5-80gb", else "own".
std::string origin_of_kernels(const LoadedDevice& loaded) {
  const auto source = loaded.sources.find("attention.forward");
  constexpr std::string_view kScaled = "scaled from ";
  if (source == loaded.sources.end() || !source->second.starts_with(kScaled)) return "own";
  return source->second.substr(0, source->second.find(' ', kScaled.size()));
}

}  // namespace

Page models_page() {
  Json entries = Json::array();
  Table table = empty_table(left_aligned("model"), left_aligned("family"), "parameters", "active",
                            "layers", "hidden", "heads", "experts", "max sequence");
  for (const std::string& name : model_preset_names()) {
    const ModelGraph model = model_from_config(find_model(name));
    const ModelTraits traits = traits_of(model);
    const auto number = [](std::optional<int> n) { return n ? std::to_string(*n) : "-"; };
    table.rows.push_back(
        {name, model.family, grouped(parameter_count(model)),
         grouped(active_parameter_count(model)), std::to_string(traits.blocks),
         std::to_string(traits.hidden), number(traits.heads), number(traits.experts),
         model.longest_sequence > 0 ? std::to_string(model.longest_sequence) : "-"});
    entries.push_back({{"name", name},
                       {"family", model.family},
                       {"parameters", parameter_count(model)},
                       {"active_parameters", active_parameter_count(model)},
                       {"blocks", traits.blocks},
                       {"hidden", traits.hidden}});
  }
  return page_of("models", entries, table);
}

Page clusters_page() {
  Json entries = Json::array();
  Table table = empty_table(left_aligned("cluster"), "devices", "per node", left_aligned("device"),
                            "memory", "peak", "intra-node", left_aligned("inter-node"));
  for (const std::string& name : cluster_preset_names()) {
    const Cluster cluster = cluster_from_toml(find_cluster(name));
    const NodeModel& node = node_of(cluster, DeviceId(0));
    const DeviceModel& device = device_of(cluster, DeviceId(0));
    const auto peak = peak_of(device);
    table.rows.push_back(
        {name, std::to_string(device_count(cluster)), std::to_string(node.device_count),
         device.name, to_text(device.memory), peak ? to_text(*peak) : "-",
         to_text(node.local.bandwidth),
         node.ports > 0 ? fmt::format("{} x {}", node.ports, to_text(node.port_bandwidth)) : "-"});
    entries.push_back({{"name", name},
                       {"devices", device_count(cluster)},
                       {"devices_per_node", node.device_count},
                       {"device", device.name},
                       {"memory_bytes", device.memory.value}});
  }
  return page_of("clusters", entries, table);
}

Page devices_page() {
  Json entries = Json::array();
  Table table = empty_table(left_aligned("device"), "memory", "bandwidth", "peak", "fp8",
                            left_aligned("kernel models"));
  for (const std::string& name : device_preset_names()) {
    const LoadedDevice loaded = device_from_toml(find_device(name));
    const DeviceModel& device = loaded.device;
    const auto peak = peak_of(device);
    const auto fp8 = device.peak[static_cast<std::size_t>(Dtype::kFp8)];
    const std::string kernels = origin_of_kernels(loaded);
    table.rows.push_back({name, to_text(device.memory), to_text(device.memory_bandwidth),
                          peak ? to_text(*peak) : "-", fp8 ? to_text(*fp8) : "-", kernels});
    entries.push_back({{"name", name},
                       {"device", device.name},
                       {"memory_bytes", device.memory.value},
                       {"memory_bytes_per_s", device.memory_bandwidth.value},
                       {"kernel_models", kernels}});
  }
  return page_of("devices", entries, table);
}

Page schedules_page() {
  Json entries = Json::array();
  Table table =
      empty_table(left_aligned("schedule"), left_aligned("description"), left_aligned("source"));
  for (const ScheduleRule& rule : schedule_rules()) {
    table.rows.push_back(
        {std::string(rule.name), std::string(rule.summary), std::string(rule.source)});
    entries.push_back({{"name", rule.name}, {"summary", rule.summary}, {"source", rule.source}});
  }
  return page_of("schedules", entries, table);
}

}  // namespace meshwright
