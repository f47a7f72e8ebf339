#include "core/schedule/automatic_v.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/schedule/block_keys.hpp"
#include "core/schedule/within_limits.hpp"

namespace meshwright {
namespace {

/// Memory units per micro-batch of a stage.
constexpr std::int64_t kParts = 1 << 20;

DispatchTask task_of(const ScheduleRequest& request, double own_cap) {
  const int stages = 2 * request.devices;
  const Ticks unit(1);
  DispatchTask task =
      counted_task(wave_placement(request.devices, 2), request.microbatches,
                   request.times.value_or(uniform_times(stages, unit, unit, unit)), {});
  const double freed = request.freed_by_input_gradient * static_cast<double>(kParts);
  std::fill(task.held.begin(), task.held.end(), kParts);
  std::fill(task.freed_by_input.begin(), task.freed_by_input.end(), std::llround(freed));
  const double cap = 2 * request.activation_cap.value_or(own_cap) * static_cast<double>(kParts);
  std::fill(task.limits.begin(), task.limits.end(),
            std::max<std::int64_t>(2 * kParts, std::llround(cap)));
  return task;
}

}  // namespace

Schedule shortest_v(Schedule pattern, const ScheduleRequest& request, double own_cap) {
  if (!request.times && !request.activation_cap) return pattern;
  const DispatchTask task = task_of(request, own_cap);
  const std::string name = pattern.name;
  ScheduleRequest pure = request;
  pure.times.reset();
  pure.activation_cap.reset();
  std::vector<Schedule> seeds{std::move(pattern)};
  for (const std::string_view seed : {"zb-v", "v-half", "v-min"})
    if (seed != name) seeds.push_back(find_schedule_rule(seed)->generate(pure));
  Ticks busiest;
  for (const DeviceNeed& need : needs_of_one_microbatch(task))
    busiest = std::max(busiest, need.work);
  constexpr std::int64_t kVisits = 3'000'000;  // visited operations: about 0.2 s
  const std::int64_t operations = std::int64_t{6} * request.devices * request.microbatches;
  LimitedSearch search;
  search.figure = StepFigure::kPeriod;
  search.dispatches = static_cast<int>(std::clamp<std::int64_t>(kVisits / operations, 60, 1000));
  search.goal = busiest * request.microbatches;
  search.seeds = seeds;
  Schedule schedule = schedule_within_limits(task, search).schedule;
  schedule.name = name;
  return schedule;
}

}  // namespace meshwright
