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
#include "planner/constraint_propagation.hpp"

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
  ScheduleObjective objective = ScheduleObjective::kMakespan;
  int dispatches_per_cap = 300;  ///< work to spend; see LimitedSearch
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

/// No schedule of the task is shorter than this on account of memory: a device lives at least the
/// memory-time of all its activations over its limit, from its first start to its last end
/// (J. D. C. Little, "A proof for the queuing formula L = lambda W", 1961).
Ticks memory_bound(const DispatchTask& task, ScheduleObjective objective);

}  // namespace meshwright
