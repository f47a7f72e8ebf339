/// Makes a pipeline schedule to measure: any stage times, latency, memory caps and placement in; a
/// schedule, its value, a lower bound and the gap between them out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "core/schedule_timing.hpp"
#include "core/stage_times.hpp"
#include "planner/constraint_propagation.hpp"

namespace meshwright {

struct SynthesisRequest {
  Placement placement;  ///< one route over all stages: linear, looped, V, wave
  int microbatches = 1;
  StageTimes times;  ///< by stage
  /// By device: stage-micro-batches held at once, from the start of F to the end of W; empty: no
  /// limit. At least the number of stages on the device.
  std::vector<int> caps;
  ScheduleObjective objective = ScheduleObjective::kMakespan;
  /// Work to spend, roughly, in visits of an operation.
  std::int64_t effort = 3'400'000;
  /// Schedules to start from as well, if they keep placement and caps.
  std::vector<Schedule> seeds;
};

struct SynthesizedSchedule {
  Schedule schedule;
  ScheduleTiming timing;
  Ticks value;         ///< of the objective
  Ticks lower_bound;   ///< no schedule within these caps has less
  std::string origin;  ///< what found it: "1f1b", "dispatch", "tabu search", …
};
inline bool is_proved_optimal(const SynthesizedSchedule& s) { return s.value == s.lower_bound; }
/// (value - bound) / bound.
double gap_of(const SynthesizedSchedule& s);

/// What is wrong with the request, with values; nothing if it can be solved.
std::optional<std::string> problem_of(const SynthesisRequest& request);

/// Portfolio: schedules of the zoo that fit, dispatching by several rules in both directions of
/// time, double justification, a random walk over packed schedules, tabu search on critical paths,
/// and branching for small cases; stops as soon as value and bound meet. Deterministic.
/// problem_of() must be empty.
SynthesizedSchedule synthesize(const SynthesisRequest& request);

/// Lower bound alone: as strong as propagation makes it below `known`, the value of some schedule.
Ticks lower_bound_of(const SynthesisRequest& request, Ticks known);

}  // namespace meshwright
