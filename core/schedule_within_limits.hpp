/// The best schedule that dispatching finds under the memory limit of every device: the
/// constructive search behind zb-v, v-half and v-min with real times, and behind the memory-time
/// front.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "core/schedule_dispatch.hpp"

namespace meshwright {

enum class StepFigure : std::uint8_t { kMakespan, kPeriod };

struct LimitedSearch {
  /// Made small; the other figure breaks ties.
  StepFigure figure = StepFigure::kPeriod;
  int dispatches = 1000;                 ///< work to spend
  Ticks goal;                            ///< stop when reached: a lower bound
  std::uint32_t variation = 0;           ///< another number, other draws: for several starts
  std::span<const Schedule> seeds = {};  ///< with the task's placement; need not keep the limits
};

struct LimitedSchedule {
  Schedule schedule;
  DispatchOutcome outcome;
};

/// Blocks of many shapes, and the seeds, packed to the left by the dispatcher; then the keys of the
/// best one are changed, a few sequences at a time, and kept where the result is no longer. Never
/// longer than a seed that keeps the limits. Deterministic. O(dispatches x m S v).
LimitedSchedule schedule_within_limits(const DispatchTask& task, const LimitedSearch& search);

}  // namespace meshwright
