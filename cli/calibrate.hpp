/// Benchmarks this machine: kernels in small training steps, messages, collectives.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/base/units.hpp"
#include "core/cost/calibration.hpp"

namespace meshwright {

struct CalibrationRequest {
  /// No probe starts later than this. The most important probes come first.
  std::chrono::milliseconds budget = std::chrono::seconds(90);
  std::string command;         ///< for the provenance
  std::string device = "cpu";  ///< "cuda": kernels run on the GPU and are timed there
  /// Called between probes with the last probe and the fraction of the budget used; throws to stop.
  std::function<void(const std::string& what, double share)> progress = {};
};

/// Physical memory; nothing if the system does not say.
std::optional<Bytes> machine_memory();

Calibration calibrate(const CalibrationRequest& request);

}  // namespace meshwright
