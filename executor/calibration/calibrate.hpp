/// Benchmarks this machine: kernels in small training steps, messages, collectives.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/cost/calibration.hpp"
#include "executor/calibration/measure_kernels.hpp"

namespace meshwright {

struct CalibrationRequest {
  const KernelTable& kernels;
  const DeviceTable* device = nullptr;  ///< the GPU that runs them; null: the host
  std::size_t probe_count = 0;
  /// The most important probes first: a calibration that runs out of time has measured those.
  std::function<KernelProbe(std::size_t number)> probe;
  /// No probe starts later than this; at least one runs.
  std::chrono::milliseconds budget = std::chrono::seconds(90);
  /// Called between probes with the last probe and the fraction of the budget used; throws to stop.
  std::function<void(const std::string& what, double share)> progress = {};
};

struct MeasuredCalibration {
  Calibration calibration;            ///< without noise and provenance
  std::vector<WaitingProbe> waiting;  ///< of probes with equal ranks
  std::size_t probes = 0;             ///< number of probes that ran; repeats count
};
MeasuredCalibration measure_calibration(const CalibrationRequest& request);

}  // namespace meshwright
