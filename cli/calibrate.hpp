/// Measures this machine: kernels as they run in small training steps, messages, collectives.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/calibration.hpp"

namespace meshwright {

struct CalibrationRequest {
  /// No probe begins later than this after the start. What comes first matters most.
  std::chrono::milliseconds budget = std::chrono::seconds(90);
  std::string command;         ///< for the provenance
  std::string device = "cpu";  ///< "cuda": kernels run on the GPU and are timed there
  /// Between probes: what was done, as a share of the budget; throws to stop.
  std::function<void(const std::string& what, double share)> progress = {};
};

Calibration calibrate(const CalibrationRequest& request);

}  // namespace meshwright
