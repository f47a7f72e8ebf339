/// What the error of a prediction is made of, kernel by kernel.
#pragma once

#include <span>
#include <string>

#include "core/cost_model.hpp"
#include "executor/timed_actions.hpp"

namespace meshwright {

/// A table of kernels by routine and phase: their share of all time, the mean of a call, and how
/// far all calls together are from what was predicted.
std::string kernel_errors(std::span<const TimedKernels> measured, const CostModel& costs);

}  // namespace meshwright
