/// Benchmarks this machine for `calibrate`: which probes, and where the figures come from.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "core/cost/calibration.hpp"

namespace meshwright {

struct CalibrateCall {
  /// No probe starts later than this. The most important probes come first.
  std::chrono::milliseconds budget = std::chrono::seconds(90);
  std::string command;         ///< for the provenance
  std::string device = "cpu";  ///< of a GPU: kernels run and are timed there
  /// Called between probes with the last probe and the fraction of the budget used; throws to stop.
  std::function<void(const std::string& what, double share)> progress = {};
};
Calibration calibrate(const CalibrateCall& call);

}  // namespace meshwright
