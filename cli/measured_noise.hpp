/// Estimates the jitter between equal ranks of this machine from their synchronization waits.
#pragma once

#include <vector>

#include "core/cost/calibration.hpp"
#include "executor/calibration/measure_kernels.hpp"

namespace meshwright {

/// Passes of tensor-parallel ranks, which synchronize in every layer.
struct WaitingPasses {
  TaskGraph graph;
  Seconds waiting;  ///< per step, sum over all ranks
};

/// The noise (MeasuredMachine) for which the predicted waiting of all passes equals the measured
/// one; waits grow with its square root. 0 without passes. The calibration must have a machine.
Seconds noise_of(Calibration calibration, const std::vector<WaitingPasses>& passes);

}  // namespace meshwright
