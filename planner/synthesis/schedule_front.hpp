/// Pareto front of memory and step time: one schedule with a lower bound for each memory cap, for
/// placements with any number of stages per device (linear, looped, V, wave).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/schedule/dispatch.hpp"
#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"
#include "core/schedule/timing.hpp"
#include "planner/synthesis/schedule_synthesis.hpp"

namespace meshwright {

struct FrontRequest {
  Placement placement;  ///< one route over all stages
  int microbatches = 1;
  StageTimes times;  ///< by stage
  /// Ascending; each applies to every device, in the unit of `held`. The smallest must admit one
  /// micro-batch on all stages of a device.
  std::vector<int> caps;
  /// By stage, the amount that a micro-batch holds from the start of its forward to the end of its
  /// weight gradient. Empty: one each, so that caps count stage-micro-batches.
  std::vector<int> held;
  /// By stage, the part of it released at the end of the input gradient. Empty: nothing.
  std::vector<int> freed_by_input;
  ScheduleObjective objective = ScheduleObjective::kMakespan;
  /// Search effort; see LimitedSearch. Moving critical operations takes about as long again. One
  /// additional start per 400.
  int dispatches_per_cap = 150;
  /// Tried at every cap in addition to the published schedules for this placement.
  std::vector<Schedule> seeds;
};

struct MemoryTimePoint {
  int cap = 0;
  Schedule schedule;
  ScheduleTiming timing;
  Ticks value;        ///< of the objective
  Ticks lower_bound;  ///< of the objective of any schedule within the cap
};
inline bool is_proved_optimal(const MemoryTimePoint& p) { return p.value == p.lower_bound; }
/// (value - bound) / bound.
double gap_of(const MemoryTimePoint& point);

/// The problem with the request, with values; nullopt if it is valid.
std::optional<std::string> problem_of(const FrontRequest& request);

/// One schedule per cap. Values never increase with the cap, since each schedule is a seed for the
/// next cap, and never exceed that of a published schedule (one route, split or whole backwards, no
/// overlap) within the cap. Deterministic. problem_of() must be nullopt.
std::vector<MemoryTimePoint> memory_time_front(const FrontRequest& request);

/// synthesize(), and for several stages per device also the search of the front within the caps of
/// each device, with the memory bound. Never worse than synthesize() alone; takes at most about
/// half a second more. Deterministic. problem_of() must be nullopt.
SynthesizedSchedule best_within_caps(const SynthesisRequest& request);

}  // namespace meshwright
