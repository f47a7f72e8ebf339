/// Estimates the jitter between equal ranks of this machine from their synchronization waits.
#pragma once

#include <vector>

#include "core/cost/calibration.hpp"
#include "executor/calibration/measure_kernels.hpp"

namespace meshwright {

/// The noise (MeasuredMachine) for which the predicted waiting of all probes equals the measured
/// one; waits grow with its square root. 0 without probes. The calibration must have a machine.
Seconds noise_of(Calibration calibration, const std::vector<WaitingProbe>& probes);

}  // namespace meshwright
