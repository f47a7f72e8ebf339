#include <fmt/format.h>

#include "core/cluster/device_parameters.hpp"
#include "core/cluster/visit_collective_parameters.hpp"
#include "models/load/device_toml.hpp"
#include "models/load/load.hpp"
#include "models/text/toml_text.hpp"

namespace meshwright {
namespace {

std::string power_text(Watts power) { return fmt::format("\"{} W\"", power.value); }

class DeviceWriter {
 public:
  DeviceWriter(const DeviceModel& device, const DeviceTextPlace& place,
               const std::map<std::string, std::string>& sources)
      : device_(device), place_(place), path_(place.path), sources_(sources) {}

  std::string write() {
    write_datasheet();
    begin("gemm");
    line("tile_m", device_.gemm.tile_m);
    line("tile_n", device_.gemm.tile_n);
    visit_parameters_of_gemm(device_.gemm, *this);
    begin("memory_efficiency");
    visit_parameters_of_stream(device_.memory_efficiency, *this);
    for (std::size_t i = 0; i < device_.streams.size(); ++i) {
      if (!device_.streams[i]) continue;
      begin(fmt::format("memory_efficiency.{}", name_of(static_cast<StreamFamily>(i))));
      visit_parameters_of_stream(*device_.streams[i], *this);
    }
    begin("attention");
    visit_parameters_of_attention(device_.attention, *this);
    if (device_.flash_attention_2) {
      begin("flash_attention_2");
      visit_parameters_of_attention(*device_.flash_attention_2, *this);
    }
    if (device_.collectives) write_collectives(*device_.collectives);
    return std::move(out_);
  }

  void operator()(std::string_view key, double value, ParameterBounds /*valid*/) {
    line(key, value);
  }
  void operator()(std::string_view key, std::optional<double> value, ParameterBounds /*valid*/) {
    if (value) line(key, *value);
  }
  /// Zero is the reader's default for an absent quantity, and not a value that it accepts.
  void operator()(std::string_view key, Seconds value, ParameterBounds /*valid*/) {
    if (value != Seconds()) line(key, text_of(value));
  }
  void operator()(std::string_view key, std::optional<Seconds> value, ParameterBounds /*valid*/) {
    if (value) line(key, text_of(*value));
  }
  void operator()(std::string_view key, Bytes value, ParameterBounds /*valid*/) {
    if (value != Bytes()) line(key, text_of(value));
  }

 private:
  void begin(const std::string& table) {
    const std::string dot = place_.prefix.empty() ? "" : ".";
    out_ += fmt::format("\n[{}{}{}]\n", place_.prefix, dot, table);
    path_ = place_.path.empty() ? table : fmt::format("{}.{}", place_.path, table);
  }
  template <class Value>
  void line(std::string_view key, const Value& value) {
    out_ += fmt::format("{} = {}\n", key, value);
    const std::string name = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
    const auto source = sources_.find(name);
    if (source != sources_.end())
      out_ += fmt::format("sources.{} = {}\n", key, toml_quoted(source->second));
  }

  void write_collectives(const CollectiveParameters& collectives) {
    begin("collectives");
    visit_parameters_of_collectives(collectives, *this);
    visit_collective_tables(collectives, [&](std::string_view name, const auto& table) {
      begin(fmt::format("collectives.{}", name));
      visit_parameters_of_table(table, *this);
    });
  }

  void write_datasheet() {
    line("name", toml_quoted(device_.name));
    line("memory", text_of(device_.memory));
    if (device_.reserved_memory != Bytes())
      line("reserved_memory", text_of(device_.reserved_memory));
    if (device_.kernels == KernelLibrary::kOwn) line("kernels", toml_quoted("own"));
    line("memory_bandwidth", text_of(device_.memory_bandwidth));
    line("launch_overhead", text_of(device_.launch_overhead));
    line("multiprocessors", device_.multiprocessors);
    if (device_.design_power) line("design_power", power_text(*device_.design_power));
    if (device_.power_limit) line("power_limit", power_text(*device_.power_limit));
    line("compute_capability", device_.compute_capability.value_or(0));
    begin("peak");
    for (std::size_t i = 0; i < device_.peak.size(); ++i)
      if (device_.peak[i]) line(name_of(static_cast<Dtype>(i)), text_of(*device_.peak[i]));
  }

  const DeviceModel& device_;
  const DeviceTextPlace& place_;
  std::string out_, path_;
  const std::map<std::string, std::string>& sources_;
};

}  // namespace

std::string device_text(const DeviceModel& device, const DeviceTextPlace& place,
                        const std::map<std::string, std::string>& sources) {
  return DeviceWriter(device, place, sources).write();
}

std::string device_to_toml(const LoadedDevice& loaded, const std::vector<std::string>& notes) {
  return toml_comment(notes) + "schema = 1\n" + device_text(loaded.device, {}, loaded.sources);
}

}  // namespace meshwright
