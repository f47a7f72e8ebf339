/// By how much equal ranks of this machine differ, from what they waited for each other in probes.
#pragma once

#include <vector>

#include "core/calibration.hpp"
#include "executor/measure_kernels.hpp"

namespace meshwright {

/// Passes of tensor ranks, which meet in every layer.
struct WaitingPasses {
  TaskGraph graph;
  Seconds waiting;  ///< in a step, all ranks together
};

/// The noise (MeasuredMachine) with which the calibration's kernels give all the waiting together:
/// waits grow with its square root. 0 without passes. The calibration must have a machine.
Seconds noise_of(Calibration calibration, const std::vector<WaitingPasses>& passes);

}  // namespace meshwright
