/// How the step gets shorter as devices may hold more: one schedule, with its bound, per memory
/// cap, for placements with any number of stages per device (lines, loops, Vs, waves).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "core/schedule_dispatch.hpp"
#include "core/schedule_timing.hpp"
#include "core/stage_times.hpp"
#include "planner/schedule_synthesis.hpp"

namespace meshwright {

struct FrontRequest {
  Placement placement;  ///< one route over all stages
  int microbatches = 1;
  StageTimes times;  ///< by stage
  /// Rising; the same on every device, in the unit of `held`. The least one lets one micro-batch
  /// pass: what it holds on all stages of a device.
  std::vector<int> caps;
  /// By stage, what a micro-batch holds there from the start of its forward to the end of its
  /// weight gradient. Empty: one each, so that caps count stage-micro-batches.
  std::vector<int> held;
  /// By stage, what of it the end of the input gradient gives back. Empty: nothing.
  std::vector<int> freed_by_input;
  ScheduleObjective objective = ScheduleObjective::kMakespan;
  /// Work to spend; see LimitedSearch. Critical operations are moved for about as long again. Every
  /// 400 are another start.
  int dispatches_per_cap = 150;
  /// Tried at every cap besides the schedules of the zoo for this placement.
  std::vector<Schedule> seeds;
};

struct MemoryTimePoint {
  int cap = 0;
  Schedule schedule;
  ScheduleTiming timing;
  Ticks value;        ///< of the objective
  Ticks lower_bound;  ///< no schedule within the cap has less
};
inline bool is_proved_optimal(const MemoryTimePoint& p) { return p.value == p.lower_bound; }
/// (value - bound) / bound.
double gap_of(const MemoryTimePoint& point);

/// What is wrong with the request, with values; nothing if it can be solved.
std::optional<std::string> problem_of(const FrontRequest& request);

/// A schedule per cap. Values never rise with the cap, since each schedule is offered to the next
/// cap, and are never above those of a schedule of the zoo (one route, split or whole backwards,
/// no overlap) that keeps the cap. Deterministic. problem_of() must be empty.
std::vector<MemoryTimePoint> memory_time_front(const FrontRequest& request);

/// synthesize(), and for several stages per device the search of the front within the caps of each
/// device as well, with the bound that memory sets. Never longer than synthesize() alone; at most
/// about half a second more. Deterministic. problem_of() must be empty.
SynthesizedSchedule best_within_caps(const SynthesisRequest& request);

}  // namespace meshwright
