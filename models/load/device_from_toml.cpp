#include "core/cluster/device_parameters.hpp"
#include "core/cluster/visit_collective_parameters.hpp"
#include "models/load/device_toml.hpp"
#include "models/load/load.hpp"
#include "models/load/resolve_references.hpp"
#include "models/text/parameter_reader.hpp"

namespace meshwright {
namespace {

constexpr int kDeviceSchema = 1;

void read_gemm(TomlReader& reader, GemmEfficiency& gemm) {
  constexpr int kLargestTile = 4096;
  gemm.tile_m = reader.whole_number("tile_m", 1, kLargestTile, gemm.tile_m);
  gemm.tile_n = reader.whole_number("tile_n", 1, kLargestTile, gemm.tile_n);
  visit_parameters_of_gemm(gemm, ParameterReader{reader});
}

void read_streams(TomlReader& reader, DeviceModel& device) {
  visit_parameters_of_stream(device.memory_efficiency, ParameterReader{reader});
  for (int i = 0; i < kStreamFamilyCount; ++i)
    reader.table(name_of(static_cast<StreamFamily>(i)), false, [&](TomlReader& r) {
      visit_parameters_of_stream(device.streams[static_cast<std::size_t>(i)].emplace(),
                                 ParameterReader{r});
    });
}

CollectiveParameters read_collectives(TomlReader& reader) {
  CollectiveParameters collectives;
  visit_parameters_of_collectives(collectives, ParameterReader{reader});
  visit_collective_tables(collectives, [&](std::string_view name, auto& table) {
    reader.table(name, false,
                 [&](TomlReader& r) { visit_parameters_of_table(table, ParameterReader{r}); });
  });
  return collectives;
}

void read_peaks(TomlReader& reader, DeviceModel& device) {
  bool any = false;
  for (std::size_t i = 0; i < device.peak.size(); ++i) {
    device.peak[i] = reader.flop_rate(name_of(static_cast<Dtype>(i)));
    any |= device.peak[i].has_value();
  }
  if (!any) reader.complain("", "missing peak rate", "add bf16 = \"312 TFLOP/s\"");
}

}  // namespace

DeviceModel read_device(const std::string& key, TomlReader& reader) {
  static const std::vector<std::string> kKernels{"frameworks", "own"};
  DeviceModel device;
  device.name = reader.text("name", key);
  device.memory = reader.bytes("memory");
  device.reserved_memory = reader.bytes("reserved_memory", Bytes(0));
  device.kernels = static_cast<KernelLibrary>(reader.choice("kernels", kKernels, 0));
  device.memory_bandwidth = reader.bandwidth("memory_bandwidth");
  device.launch_overhead = reader.seconds("launch_overhead");
  device.multiprocessors = reader.whole_number("multiprocessors", 1, 1 << 16, 1);
  device.design_power = reader.power("design_power");
  device.power_limit = reader.power("power_limit");
  constexpr int kNotNvidia = 0;
  if (const int capability = reader.whole_number("compute_capability", 0, 1000, kNotNvidia);
      capability != kNotNvidia)
    device.compute_capability = capability;
  reader.table("peak", true, [&](TomlReader& r) { read_peaks(r, device); });
  reader.table("gemm", false, [&](TomlReader& r) { read_gemm(r, device.gemm); });
  reader.table("memory_efficiency", false, [&](TomlReader& r) { read_streams(r, device); });
  reader.table("attention", false, [&](TomlReader& r) {
    visit_parameters_of_attention(device.attention, ParameterReader{r});
  });
  reader.table("flash_attention_2", false, [&](TomlReader& r) {
    device.flash_attention_2.emplace();
    visit_parameters_of_attention(*device.flash_attention_2, ParameterReader{r});
  });
  reader.table("collectives", false,
               [&](TomlReader& r) { device.collectives = read_collectives(r); });
  return device;
}

namespace {

LoadedDevice read_resolved_device(const NamedText& toml, const toml::table& table) {
  LoadedDevice loaded;
  loaded.sources = read_toml(table, toml.where, [&](TomlReader& reader) {
    reader.whole_number("schema", kDeviceSchema, kDeviceSchema);
    loaded.device = read_device(toml.name, reader);
  });
  loaded.sources.erase("schema");
  throw_if_any(check_device(loaded.device, toml.where));
  return loaded;
}

}  // namespace

LoadedDevice device_from_toml(const NamedText& toml) {
  return read_resolved_device(toml, resolve_device(toml, References::kPresets).table);
}

NamedText find_device(const std::string& name_or_path) {
  NamedText found = find_device_file(name_or_path);
  const ResolvedToml resolved = resolve_device(found, References::kPresetsAndFiles);
  if (resolved.had_references)
    found.text = device_to_toml(read_resolved_device(found, resolved.table));
  return found;
}

}  // namespace meshwright
