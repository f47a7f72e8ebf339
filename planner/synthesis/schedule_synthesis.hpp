/// Pipeline schedule synthesis for arbitrary stage times, latency, memory caps and placement.
/// Returns a schedule with its value, a lower bound and the gap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"
#include "core/schedule/timing.hpp"
#include "planner/synthesis/constraint_propagation.hpp"

namespace meshwright {

struct SynthesisRequest {
  Placement placement;  ///< one route over all stages: linear, looped, V, wave
  int microbatches = 1;
  StageTimes times;  ///< by stage
  /// By device: maximum number of stage-micro-batches held at once, from the start of F to the end
  /// of W; at least the number of stages on the device. Empty: no limit.
  std::vector<int> caps;
  ScheduleObjective objective = ScheduleObjective::kMakespan;
  /// Search effort, roughly, in visits of an operation, for up to 1,600 operations (3 per stage and
  /// micro-batch); for more, up to 25,000, it grows in proportion. To prove a schedule optimal that
  /// is within 1 % of its bound takes up to half more.
  std::int64_t effort = 3'400'000;
  /// Additional start schedules; ignored unless they match placement and caps.
  std::vector<Schedule> seeds;
};

struct SynthesizedSchedule {
  Schedule schedule;
  ScheduleTiming timing;
  Ticks value;         ///< of the objective
  Ticks lower_bound;   ///< of the objective of any schedule within these caps
  std::string origin;  ///< the method that found it: "dispatch", "tabu search", …
};
inline bool is_proved_optimal(const SynthesizedSchedule& s) { return s.value == s.lower_bound; }
/// (value - bound) / bound.
double gap_of(const SynthesizedSchedule& s);

/// The problem with the request, with values; nullopt if it is valid.
std::optional<std::string> problem_of(const SynthesisRequest& request);

/// Portfolio search: published schedules that fit, priority dispatching forward and backward in
/// time, double justification, a random walk over packed schedules, tabu search on critical paths,
/// and branch and bound for small cases. Stops as soon as the value equals the bound.
/// Deterministic. problem_of() must be nullopt.
SynthesizedSchedule synthesize(const SynthesisRequest& request);

/// Only the lower bound, raised by propagation up to `known`, the value of some schedule.
Ticks lower_bound_of(const SynthesisRequest& request, Ticks known);

}  // namespace meshwright
