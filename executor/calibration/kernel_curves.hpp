/// Kernel times as the curves of a calibration.
#pragma once

#include <vector>

#include "core/cost/calibration.hpp"
#include "executor/tasks/timed_actions.hpp"

namespace meshwright {

/// Mean kernel times by family and shape; outliers are clipped to three times the median. The time
/// of kernels that were only timed together is divided by a rough formula (20 GFLOP/s, 5 GB/s).
/// Points of equal shape are pooled. Sorted by family, then by shape.
std::vector<KernelCurve> kernel_curves(const std::vector<TimedKernels>& timed);

}  // namespace meshwright
