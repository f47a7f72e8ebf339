/// Search for the best schedule under a memory limit per device, based on dispatching. Used for
/// zb-v, v-half and v-min with real times, and for the memory-time Pareto front.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule/dispatch.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

enum class StepFigure : std::uint8_t { kMakespan, kPeriod };

struct LimitedSearch {
  /// The figure to minimize; the other one breaks ties.
  StepFigure figure = StepFigure::kPeriod;
  int dispatches = 1000;                 ///< search budget
  Ticks goal;                            ///< stop when this lower bound is reached
  std::uint32_t variation = 0;           ///< random seed, for multiple starts
  std::span<const Schedule> seeds = {};  ///< with the task's placement; may exceed the limits
};

struct LimitedSchedule {
  Schedule schedule;
  DispatchOutcome outcome;
};

/// Dispatches building blocks of many shapes and the seeds, then improves the best result by local
/// search: keys are perturbed a few sequences at a time, and changes that do not make the schedule
/// longer are accepted. Never longer than a seed within the limits. Deterministic.
/// O(dispatches x m S v).
LimitedSchedule schedule_within_limits(const DispatchTask& task, const LimitedSearch& search);

}  // namespace meshwright
