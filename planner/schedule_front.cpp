#include "planner/schedule_front.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.hpp"
#include "core/schedule_block_keys.hpp"
#include "core/schedule_within_limits.hpp"
#include "planner/schedule_synthesis.hpp"

namespace meshwright {
namespace {

bool can_be_packed(const Schedule& schedule, const FrontRequest& request) {
  if (schedule.placement != request.placement || schedule.slices_per_microbatch != 1) return false;
  for (const auto& order : schedule.orders)
    for (const Action& a : order)
      if (a.overlaps_next || letter_of(a.pass) == 'S' || letter_of(a.pass) == 'T') return false;
  return true;
}

/// The schedules of the zoo for this placement, in their pure form.
std::vector<Schedule> seeds_of(const FrontRequest& request) {
  ScheduleRequest wanted;
  wanted.devices = request.placement.devices;
  wanted.chunks =
      static_cast<int>(request.placement.device_of_stage.size()) / request.placement.devices;
  wanted.microbatches = request.microbatches;
  std::vector<Schedule> seeds;
  for (const Schedule& seed : request.seeds)
    if (can_be_packed(seed, request) && seed.microbatch_count == request.microbatches)
      seeds.push_back(seed);
  for (const ScheduleRule& rule : schedule_rules()) {
    if (rule.problem(wanted) || rule.placement(wanted) != request.placement) continue;
    Schedule seed = rule.generate(wanted);
    if (can_be_packed(seed, request)) seeds.push_back(std::move(seed));
  }
  return seeds;
}

DispatchTask task_with_cap(const FrontRequest& request, int cap) {
  const std::vector<int> caps(static_cast<std::size_t>(request.placement.devices), cap);
  DispatchTask task = counted_task(request.placement, request.microbatches, request.times, caps);
  if (!request.held.empty()) task.held.assign(request.held.begin(), request.held.end());
  return task;
}

Ticks value_of(const ScheduleTiming& timing, ScheduleObjective objective) {
  return objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period;
}

/// What no schedule beats, whatever the cap.
Ticks bound_without_caps(const FrontRequest& request, Ticks known) {
  SynthesisRequest unlimited;
  unlimited.placement = request.placement;
  unlimited.microbatches = request.microbatches;
  unlimited.times = request.times;
  unlimited.objective = request.objective;
  return lower_bound_of(unlimited, known);
}

/// Value of the shortest seed, which exists for every placement that the zoo knows.
Ticks shortest(const std::vector<Schedule>& seeds, const FrontRequest& request) {
  Ticks least = Ticks::max();
  for (const Schedule& seed : seeds)
    least = std::min(least, value_of(time_schedule(seed, request.times), request.objective));
  return least;
}

}  // namespace

double gap_of(const MemoryTimePoint& point) {
  return ratio(point.value - point.lower_bound, point.lower_bound);
}

Ticks memory_bound(const DispatchTask& task, ScheduleObjective objective) {
  // The way of the first micro-batch to the device, before which it cannot hold anything.
  std::vector<Ticks> head(task.limits.size(), Ticks::max());
  Ticks arrival;
  const std::vector<StageId>& route = task.placement.routes.front();
  for (std::size_t i = 0; i < route.size(); ++i) {
    const PipelineRankId device = task.placement.device_of_stage[route[i].index()];
    if (i > 0 && device != task.placement.device_of_stage[route[i - 1].index()])
      arrival += latency_between(task.times, route[i - 1], route[i]);
    head[device.index()] = std::min(head[device.index()], arrival);
    arrival += task.times.forward[route[i].index()];
  }
  const std::vector<DeviceNeed> needs = needs_of_one_microbatch(task);
  Ticks bound;
  for (std::size_t d = 0; d < needs.size(); ++d) {
    const std::int64_t limit = std::max<std::int64_t>(task.limits[d], 1);
    const Ticks needed = needs[d].memory_time * task.microbatches + Ticks(limit - 1);
    const Ticks span = std::max(needed / limit, needs[d].work * task.microbatches);
    bound = std::max(bound, objective == ScheduleObjective::kMakespan ? head[d] + span : span);
  }
  return bound;
}

std::optional<std::string> problem_of(const FrontRequest& request) {
  SynthesisRequest plain;
  plain.placement = request.placement;
  plain.microbatches = request.microbatches;
  plain.times = request.times;
  if (const std::optional<std::string> problem = problem_of(plain)) return problem;
  if (request.dispatches_per_cap < 1)
    return fmt::format("{} dispatches per cap", request.dispatches_per_cap);
  if (!std::is_sorted(request.caps.begin(), request.caps.end())) return "the caps do not rise";
  const std::size_t stages = request.placement.device_of_stage.size();
  if (!request.held.empty() && request.held.size() != stages)
    return fmt::format("{} amounts held for {} stages", request.held.size(), stages);
  std::vector<std::int64_t> least(static_cast<std::size_t>(request.placement.devices), 0);
  for (std::size_t s = 0; s < stages; ++s) {
    const int held = request.held.empty() ? 1 : request.held[s];
    if (held < 0) return fmt::format("stage {} holds {}", s, held);
    least[request.placement.device_of_stage[s].index()] += held;
  }
  for (std::size_t d = 0; d < least.size(); ++d)
    if (!request.caps.empty() && request.caps.front() < least[d])
      return fmt::format("device {} may hold {}, but one micro-batch holds {} there", d,
                         request.caps.front(), least[d]);
  return std::nullopt;
}

std::vector<MemoryTimePoint> memory_time_front(const FrontRequest& request) {
  MW_CHECK(!problem_of(request));
  std::vector<Schedule> seeds = seeds_of(request);
  const Ticks known = shortest(seeds, request);
  const Ticks uncapped = known == Ticks::max() ? Ticks() : bound_without_caps(request, known);
  std::vector<MemoryTimePoint> front;
  for (const int cap : request.caps) {
    const DispatchTask task = task_with_cap(request, cap);
    const Ticks bound = std::max(uncapped, memory_bound(task, request.objective));
    LimitedSearch search;
    search.figure = request.objective == ScheduleObjective::kMakespan ? StepFigure::kMakespan
                                                                      : StepFigure::kPeriod;
    search.dispatches = request.dispatches_per_cap;
    search.goal = bound;
    search.seeds = seeds;
    MemoryTimePoint point{cap, schedule_within_limits(task, search).schedule, {}, {}, {}};
    if (point.schedule.name.empty()) point.schedule.name = "auto";
    point.timing = time_schedule(point.schedule, request.times);
    point.value = value_of(point.timing, request.objective);
    point.lower_bound = std::min(bound, point.value);
    if (!front.empty()) seeds.pop_back();
    seeds.push_back(point.schedule);
    front.push_back(std::move(point));
  }
  return front;
}

}  // namespace meshwright
