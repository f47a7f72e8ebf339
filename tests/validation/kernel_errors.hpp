/// Breakdown of a prediction error by kernel.
#pragma once

#include <span>
#include <string>

#include "core/cost/cost_model.hpp"
#include "executor/tasks/timed_actions.hpp"

namespace meshwright {

/// A table by kernel routine and phase: share of the total time, mean time per call, and prediction
/// error over all calls.
std::string kernel_errors(std::span<const TimedKernels> measured, const CostModel& costs);

}  // namespace meshwright
