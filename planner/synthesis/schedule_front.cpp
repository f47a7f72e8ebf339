#include "planner/synthesis/schedule_front.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/schedule/block_keys.hpp"
#include "core/schedule/within_limits.hpp"
#include "planner/synthesis/periodic_pattern.hpp"
#include "planner/synthesis/schedule_construction.hpp"
#include "planner/synthesis/schedule_device_bounds.hpp"
#include "planner/synthesis/schedule_local_search.hpp"
#include "planner/synthesis/schedule_memory_bounds.hpp"
#include "planner/synthesis/schedule_synthesis.hpp"

namespace meshwright {
namespace {

bool can_be_packed(const Schedule& schedule, const FrontRequest& request) {
  if (schedule.placement != request.placement || schedule.slices_per_microbatch != 1) return false;
  for (const auto& order : schedule.orders)
    for (const Action& a : order)
      if (a.overlaps_next || letter_of(a.pass) == 'S' || letter_of(a.pass) == 'T') return false;
  return true;
}

/// Published schedules for this placement, for equal stage times and for these stage times.
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
    ScheduleRequest timed = wanted;
    timed.times = request.times;
    Schedule by_times = rule.generate(timed);
    if (!can_be_packed(seed, request)) continue;
    if (by_times.orders != seed.orders) seeds.push_back(std::move(by_times));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

std::vector<int> or_each(const std::vector<int>& given, const FrontRequest& request, int value) {
  if (!given.empty()) return given;
  return std::vector<int>(request.placement.device_of_stage.size(), value);
}

Ticks value_of(const ScheduleTiming& timing, ScheduleObjective objective) {
  return objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period;
}

/// Lower bound within the caps by device (empty: any), by propagation.
Ticks bound_within(const FrontRequest& request, std::vector<int> caps, Ticks known) {
  SynthesisRequest capped;
  capped.placement = request.placement;
  capped.microbatches = request.microbatches;
  capped.times = request.times;
  capped.objective = request.objective;
  capped.caps = std::move(caps);
  return lower_bound_of(capped, known);
}

/// Value of the shortest seed; max() if no published schedule has this placement.
Ticks shortest(const std::vector<Schedule>& seeds, const FrontRequest& request) {
  Ticks least = Ticks::max();
  for (const Schedule& seed : seeds)
    least = std::min(least, value_of(time_schedule(seed, request.times), request.objective));
  return least;
}

std::vector<int> caps_of(const FrontRequest& request, int cap) {
  return std::vector<int>(static_cast<std::size_t>(request.placement.devices), cap);
}

/// Searches cap by cap, from several starts if the effort allows: first blocks and sequences as a
/// whole, by dispatching, then single operations on critical paths.
class FrontSearch {
 public:
  explicit FrontSearch(const FrontRequest& request)
      : request_(request),
        held_(or_each(request.held, request, 1)),
        freed_(or_each(request.freed_by_input, request, 0)),
        network_(
            make_operation_network(request.placement, request.microbatches, request.times, {})) {
    if (request.objective == ScheduleObjective::kPeriod) offset_ = aim_at_period(network_).offset;
    tabu_.emplace(network_);
  }

  DispatchTask task_with(std::span<const int> caps) const;
  /// For several tasks, call it with ascending limits.
  Schedule best(const DispatchTask& task, Ticks bound, std::vector<Schedule> seeds);

 private:
  std::optional<Schedule> periodic(const DispatchTask& task);
  Schedule with_critical_moves(const DispatchTask& task, const Schedule& schedule, Ticks bound,
                               int moves);

  const FrontRequest& request_;
  std::vector<int> held_, freed_;
  OperationNetwork network_;
  Ticks offset_;
  std::optional<TabuSearch> tabu_;  ///< of network_
  std::optional<PatternSearch> patterns_;
};

/// The best schedule that starts from a periodic pattern; nothing if no pattern is found.
std::optional<Schedule> FrontSearch::periodic(const DispatchTask& task) {
  constexpr int kPlacements = 4'000;
  constexpr std::array kSlackPercents{0, 25, 50, 100};  // of the interval
  if (!patterns_) patterns_.emplace(task, 1);
  patterns_->set_limits(task.limits);
  const std::optional<PeriodicPattern> pattern =
      patterns_->improve(least_interval(task), kPlacements);
  if (!pattern) return std::nullopt;
  Dispatcher dispatcher(task);
  DispatchRule rule;
  rule.keys = keys_of(task, *pattern);
  std::optional<Schedule> best;
  Ticks best_value = Ticks::max();
  for (const int percent : kSlackPercents)
    for (const double patience : {0.5, 1.0}) {
      rule.slack = pattern->interval * percent / 100;
      rule.patience = patience;
      const std::optional<DispatchOutcome> outcome = dispatcher.run(rule, best_value);
      if (!outcome) continue;
      const Ticks value =
          request_.objective == ScheduleObjective::kMakespan ? outcome->makespan : outcome->period;
      if (value >= best_value) continue;
      best_value = value;
      best = dispatcher.schedule();
    }
  return best;
}

DispatchTask FrontSearch::task_with(std::span<const int> caps) const {
  DispatchTask task = counted_task(request_.placement, request_.microbatches, request_.times, caps);
  task.held.assign(held_.begin(), held_.end());
  task.freed_by_input.assign(freed_.begin(), freed_.end());
  return task;
}

Schedule FrontSearch::with_critical_moves(const DispatchTask& task, const Schedule& schedule,
                                          Ticks bound, int moves) {
  const std::vector<int> caps(task.limits.begin(), task.limits.end());
  weigh(network_, held_, freed_, caps);
  const TabuLimits limits{bound + offset_, moves};
  Schedule moved =
      to_schedule(network_, request_.placement, tabu_->improve(keys_of(task, schedule), limits));
  moved.name = "auto";
  return moved;
}

Schedule FrontSearch::best(const DispatchTask& task, Ticks bound, std::vector<Schedule> seeds) {
  constexpr int kPerStart = 400, kMovesPerDispatch = 2;  // a move costs half a dispatch
  const int starts = std::max(1, request_.dispatches_per_cap / kPerStart);
  const int per_start = request_.dispatches_per_cap / starts;
  LimitedSearch search;
  search.figure = request_.objective == ScheduleObjective::kMakespan ? StepFigure::kMakespan
                                                                     : StepFigure::kPeriod;
  search.goal = bound;
  const auto value = [&](const Schedule& s) {
    return value_of(time_schedule(s, request_.times), request_.objective);
  };
  if (std::optional<Schedule> pattern = periodic(task)) seeds.push_back(std::move(*pattern));
  std::vector<Schedule> found;
  for (int start = 0; start < starts; ++start) {
    search.variation = static_cast<std::uint32_t>(start);
    // Every other start moves operations of the best seed without dispatching it again.
    const bool from_seeds = start % 2 == 1 && !seeds.empty();
    search.seeds =
        from_seeds || start == 0 ? std::span<const Schedule>(seeds) : std::span<const Schedule>();
    search.dispatches = from_seeds ? 3 * static_cast<int>(seeds.size()) : per_start;
    found.push_back(schedule_within_limits(task, search).schedule);
    if (value(found.back()) <= bound) return std::move(found.back());
    const int moves = (from_seeds ? 2 : 1) * kMovesPerDispatch * per_start;
    found.push_back(with_critical_moves(task, found.back(), bound, moves));
  }
  constexpr int kPackings = 6;  // for each schedule found; also compares them
  search.dispatches = kPackings;
  search.seeds = found;
  Schedule best = schedule_within_limits(task, search).schedule;
  if (starts == 1 || value(best) <= bound) return best;
  found = {best, with_critical_moves(task, best, bound, request_.dispatches_per_cap)};
  search.seeds = found;
  return schedule_within_limits(task, search).schedule;
}

}  // namespace

double gap_of(const MemoryTimePoint& point) {
  return ratio(point.value - point.lower_bound, point.lower_bound);
}

std::optional<std::string> problem_of(const FrontRequest& request) {
  SynthesisRequest plain;
  plain.placement = request.placement;
  plain.microbatches = request.microbatches;
  plain.times = request.times;
  if (std::optional<std::string> problem = problem_of(plain)) return problem;
  if (request.dispatches_per_cap < 1)
    return fmt::format("dispatches per cap must be at least 1, got {}", request.dispatches_per_cap);
  if (!std::is_sorted(request.caps.begin(), request.caps.end()))
    return "caps must be in ascending order";
  const std::size_t stages = request.placement.device_of_stage.size();
  if (!request.held.empty() && request.held.size() != stages)
    return fmt::format("expected {} amounts held (one per stage), got {}", stages,
                       request.held.size());
  if (!request.freed_by_input.empty() && request.freed_by_input.size() != stages)
    return fmt::format("expected {} amounts freed (one per stage), got {}", stages,
                       request.freed_by_input.size());
  std::vector<std::int64_t> least(static_cast<std::size_t>(request.placement.devices), 0);
  for (std::size_t s = 0; s < stages; ++s) {
    const int held = request.held.empty() ? 1 : request.held[s];
    const int freed = request.freed_by_input.empty() ? 0 : request.freed_by_input[s];
    if (held < 0) return fmt::format("amount held by stage {} is negative: {}", s, held);
    if (freed < 0 || freed > held)
      return fmt::format("amount freed by the input gradient of stage {} must be 0 to {}, got {}",
                         s, held, freed);
    least[request.placement.device_of_stage[s].index()] += held;
  }
  for (std::size_t d = 0; d < least.size(); ++d)
    if (!request.caps.empty() && request.caps.front() < least[d])
      return fmt::format("cap {} is too small for device {}: one micro-batch needs {}",
                         request.caps.front(), d, least[d]);
  return std::nullopt;
}

std::vector<MemoryTimePoint> memory_time_front(const FrontRequest& request) {
  MW_CHECK(!problem_of(request));
  const std::vector<Schedule> published = seeds_of(request);
  const Ticks known = shortest(published, request);
  const Ticks uncapped = known == Ticks::max() ? Ticks() : bound_within(request, {}, known);
  FrontSearch search(request);
  std::vector<MemoryTimePoint> front;
  for (const int cap : request.caps) {
    const DispatchTask task = search.task_with(caps_of(request, cap));
    const Ticks bound = std::max(uncapped, memory_bound(task, request.objective));
    std::vector<Schedule> seeds = published;
    if (!front.empty()) seeds.push_back(front.back().schedule);
    MemoryTimePoint point{cap, search.best(task, bound, std::move(seeds)), {}, {}, {}};
    if (point.schedule.name.empty()) point.schedule.name = "auto";
    point.timing = time_schedule(point.schedule, request.times);
    point.value = value_of(point.timing, request.objective);
    point.lower_bound = std::min(point.value, bound);
    if (!is_proved_optimal(point))
      point.lower_bound = std::max(point.lower_bound,
                                   device_bound(task, request.objective, {.known = point.value}));
    // Propagation counts stage-micro-batches.
    if (request.held.empty() && !is_proved_optimal(point))
      point.lower_bound =
          std::max(point.lower_bound, bound_within(request, caps_of(request, cap), point.value));
    front.push_back(std::move(point));
  }
  return front;
}

SynthesizedSchedule best_within_caps(const SynthesisRequest& request) {
  constexpr std::int64_t kVisits = 600'000;  // of an operation, by dispatching: 50 ms
  SynthesizedSchedule made = synthesize(request);
  const auto devices = static_cast<std::size_t>(request.placement.devices);
  const std::size_t stages = request.placement.device_of_stage.size();
  if (stages == devices || is_proved_optimal(made)) return made;
  FrontRequest packed;
  packed.placement = request.placement;
  packed.microbatches = request.microbatches;
  packed.times = request.times;
  packed.objective = request.objective;
  packed.seeds = request.seeds;
  packed.seeds.push_back(made.schedule);
  const std::int64_t operations = 3 * static_cast<std::int64_t>(stages) * request.microbatches;
  packed.dispatches_per_cap =
      static_cast<int>(std::clamp<std::int64_t>(kVisits / operations, 20, 400));
  std::vector<int> caps = request.caps;
  if (caps.empty()) caps.assign(devices, static_cast<int>(stages) * request.microbatches);
  FrontSearch search(packed);
  const DispatchTask task = search.task_with(caps);
  made.lower_bound = std::max(made.lower_bound, memory_bound(task, request.objective));
  Schedule schedule = search.best(task, made.lower_bound, seeds_of(packed));
  const ScheduleTiming timing = time_schedule(schedule, request.times);
  const Ticks value = value_of(timing, request.objective);
  if (value < made.value) {
    schedule.name = made.schedule.name;
    made = {std::move(schedule), timing, value, made.lower_bound, "blocks and critical moves"};
  }
  if (!is_proved_optimal(made))
    made.lower_bound =
        std::max(made.lower_bound, device_bound(task, request.objective, {.known = made.value}));
  return made;
}

}  // namespace meshwright
