#include "cli/calibration/calibrate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/calibration/calibration_probes.hpp"
#include "cli/calibration/measured_noise.hpp"
#include "cli/run/run_device.hpp"
#include "executor/calibration/calibrate.hpp"
#include "executor/calibration/host.hpp"

namespace meshwright {
namespace {

std::string load_text() {
  const std::optional<double> load = load_average();
  return load ? fmt::format("{:.1f}", *load) : "unknown";
}

std::map<std::string, std::string> provenance_of(const CalibrateCall& call,
                                                 const std::string& load_before) {
  std::map<std::string, std::string> provenance;
  provenance["device"] = processor_name();
  provenance["date"] = fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
  provenance["program"] = "meshwright " MESHWRIGHT_VERSION;
  provenance["command"] = call.command;
  provenance["kernels"] = kernels_text(call.device);
  provenance["conditions"] = fmt::format(
      "load {} before, {} after; {}", load_before, load_text(),
      is_gpu(call.device)
          ? "kernels and copies by events of the GPU, means of kernels; launches by the wall clock"
          : "CPU time of one thread, means; messages by the wall clock");
#if defined(__clang__)
  provenance["compiler"] = "clang " __clang_version__;
#else
  provenance["compiler"] = "gcc " __VERSION__;
#endif
#ifndef NDEBUG
  provenance["compiler"] += ", checks on";
#endif
  return provenance;
}

}  // namespace

Calibration calibrate(const CalibrateCall& call) {
  const std::string load_before = load_text();
  const KernelTable& kernels = kernels_of_device(call.device);  // throws if it cannot be used
  const std::vector<ProbeShape> probes = is_gpu(call.device) ? gpu_probes() : calibration_probes();
  MeasuredCalibration measured =
      measure_calibration({.kernels = kernels,
                           .device = device_of(call.device),
                           .probe_count = probes.size(),
                           .probe = [&](std::size_t i) { return probe_of(probes[i]); },
                           .budget = call.budget,
                           .progress = call.progress});
  Calibration calibration = std::move(measured.calibration);
  if (!calibration.machine->gpu)
    calibration.machine->noise = noise_of(calibration, measured.waiting);
  calibration.provenance = provenance_of(call, load_before);
  calibration.provenance["probes"] =
      fmt::format("{} of {} probes, {} in all", std::min(measured.probes, probes.size()),
                  probes.size(), measured.probes);
  return calibration;
}

}  // namespace meshwright
