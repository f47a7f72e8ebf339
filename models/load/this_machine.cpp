#include "models/load/this_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr const char* kVariable = "MESHWRIGHT_CALIBRATION";
constexpr const char* kRunCalibrate = "run 'meshwright calibrate' (takes two minutes)";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string source_of(const Calibration& calibration) {
  const auto said = [&](const char* key) {
    const auto found = calibration.provenance.find(key);
    return found == calibration.provenance.end() ? std::string("unknown") : found->second;
  };
  return fmt::format("measured by meshwright calibrate, {}", said("date"));
}

/// A core, or a GPU.
DeviceModel device_of(const MeasuredMachine& machine) {
  DeviceModel device;
  device.name = machine.gpu ? machine.processor : "core of " + machine.processor;
  device.memory = machine.gpu ? machine.memory : Bytes(machine.memory.value / machine.cores);
  device.kernels = KernelLibrary::kOwn;
  for (const auto& [dtype, rate] : machine.peak)
    device.peak[static_cast<std::size_t>(dtype)] = rate;
  device.memory_bandwidth = machine.memory_bandwidth;
  device.launch_overhead = machine.gpu ? machine.gpu->launch_overhead : Seconds(1e-6);
  constexpr int kTile = 64;  ///< rows and columns of a GEMM tile
  device.gemm.max_efficiency = 1;
  device.gemm.tile_m = device.gemm.tile_n = kTile;
  device.memory_efficiency = {.max_efficiency = 1, .half_speed_bytes = {}};
  const AttentionPassEfficiency pass{
      .head_128 = 0.3, .head_64 = 0.3, .head_256 = 0.3, .dropout_share = 1};
  device.attention = {.forward = pass, .backward = pass, .ramp = {}};
  return device;
}

}  // namespace

std::string this_machine_path() {
  if (std::string file = variable(kVariable); !file.empty()) return file;
  constexpr const char* kFile = "meshwright/this-machine.calib.json";
  if (const std::string data = variable("XDG_DATA_HOME"); !data.empty())
    return (std::filesystem::path(data) / kFile).string();
  if (const std::string home = variable("HOME"); !home.empty())
    return (std::filesystem::path(home) / ".local/share" / kFile).string();
  throw RuntimeFailure({std::string(kThisMachine), "no directory for the calibration",
                        fmt::format("set {} to a file, or HOME", kVariable)});
}

Calibration this_machine_calibration() {
  const std::string path = this_machine_path();
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw RuntimeFailure({std::string(kThisMachine),
                          fmt::format("not calibrated: '{}' does not exist", path), kRunCalibrate});
  Calibration calibration = calibration_from_json(read_file(path), path);
  if (!calibration.machine)
    throw InputError(
        {path, "does not describe a machine: not usable for this-machine", kRunCalibrate});
  return calibration;
}

Cluster cluster_of(const Calibration& calibration) {
  MW_CHECK(calibration.machine.has_value());
  const MeasuredMachine& machine = *calibration.machine;
  Cluster cluster;
  cluster.name = kThisMachine;
  const std::string device = machine.gpu ? "gpu" : "core";
  cluster.devices[device] = device_of(machine);
  NodeModel node;
  node.name = kThisMachine;
  node.device = device;
  const int devices = machine.gpu ? machine.gpu->count : machine.cores;
  node.device_count = std::max(devices, kMostRanksOfThisMachine);
  node.local = {.kind = LocalNetworkKind::kSharedMemory,
                .bandwidth = machine.message_bandwidth,
                .latency = machine.message_latency};
  node.cpu = CpuVendor::kOther;
  // The calibration of a GPU has no host memory bandwidth; it is at least that of the copies.
  const BytesPerSecond of_host = machine.gpu
                                     ? std::min(machine.gpu->to_device, machine.gpu->from_device)
                                     : machine.memory_bandwidth;
  node.host = HostModel{.device_link = of_host, .memory_bandwidth = of_host};
  cluster.nodes["machine"] = node;
  cluster.groups = {{.node = "machine", .count = 1}};
  const std::string measured = source_of(calibration);
  for (const char* figure :
       {"memory", "memory_bandwidth", "peak.fp32", "peak.bf16", "launch_overhead"})
    cluster.sources[fmt::format("devices.{}.{}", device, figure)] = measured;
  if (!machine.gpu)
    cluster.sources["devices.core.launch_overhead"] = "assumption: function call and bookkeeping";
  cluster.sources["nodes.machine.device_count"] =
      fmt::format("{0} {1}; more ranks than {1} require the virtual clock", devices,
                  machine.gpu ? "GPUs" : "cores");
  cluster.sources["nodes.machine.local.bandwidth"] = measured;
  cluster.sources["nodes.machine.local.latency"] = measured;
  return cluster;
}

NamedText this_machine_cluster(const Calibration& calibration) {
  return {.name = std::string(kThisMachine),
          .where = "the calibration of this machine",
          .text = cluster_to_toml(cluster_of(calibration), {})};
}

}  // namespace meshwright
