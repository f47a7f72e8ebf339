#include "cli/schedule/schedule_figures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/flags/decimal_time.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "core/formats/schedule_csv.hpp"
#include "planner/synthesis/schedule_front.hpp"
#include "planner/synthesis/schedule_route_bounds.hpp"

namespace meshwright {
namespace {

using Words = std::vector<std::string>;

/// Times by stage, from one value, one per device (divided evenly among its chunks), or one per
/// chunk.
std::vector<Ticks> spread(const char* flag, const Words& words, Ticks unit,
                          const Placement& placement) {
  std::vector<Ticks> given = parse_decimal_times(flag, words, unit);
  const std::size_t stages = placement.device_of_stage.size(), n = given.size();
  const auto devices = static_cast<std::size_t>(placement.devices);
  if (n != 1 && n != stages && n != devices)
    refuse_flag(flag, fmt::format("{} values for {} stages", n, devices),
                fmt::format("give one value, or {}", devices));
  if (n == stages && n != 1 && stages != devices) return given;
  const auto chunks = static_cast<std::int64_t>(stages / devices);
  // Replicas are whole stages; chunks are parts of one.
  const std::int64_t parts = placement.routes.size() > 1 ? 1 : chunks;
  std::vector<Ticks> times;
  for (const PipelineRankId device : placement.device_of_stage)
    times.push_back((n == 1 ? given.front() : given[device.index()]) / parts);
  return times;
}

/// One latency, or one per device: that of the link to the next device. The link of the last device
/// leads back to the first and may be omitted.
void read_latency(const Words& words, Ticks unit, const Placement& placement, StageTimes& times) {
  const std::vector<Ticks> given = parse_decimal_times("--tcomm", words, unit);
  times.latency = *std::max_element(given.begin(), given.end());
  if (given.size() == 1) return;
  const auto devices = static_cast<std::size_t>(placement.devices);
  if (given.size() != devices && given.size() + 1 != devices)
    refuse_flag(
        "--tcomm", fmt::format("{} values for {} stages", given.size(), devices),
        fmt::format("give one value, {} (one per neighboring pair), or {}", devices - 1, devices));
  for (std::size_t s = 0; s + 1 < placement.device_of_stage.size(); ++s) {
    const std::size_t a = placement.device_of_stage[s].index();
    const std::size_t b = placement.device_of_stage[s + 1].index();
    const bool wraps = std::max(a, b) - std::min(a, b) > 1;
    const std::size_t link = wraps ? devices - 1 : std::min(a, b);
    times.boundary_latency.push_back(link < given.size() ? given[link] : times.latency);
  }
}

StageTimes times_of(const ScheduleFlags& flags, const Placement& placement, int slices = 1) {
  const Ticks unit = ticks_of_unit(flags.unit);
  StageTimes times;
  const auto read = [&](const char* flag, const Words& words, std::vector<Ticks>& list) {
    list = spread(flag, words, unit, placement);
    for (Ticks& time : list) time = time / slices;
  };
  read("--tf", flags.forward, times.forward);
  read("--tb", flags.backward_input, times.backward_input);
  read("--tw", flags.backward_weight, times.backward_weight);
  read("--ts", flags.output_scores, times.output_scores);
  read("--tt", flags.output_gradients, times.output_gradients);
  read_latency(flags.latency, unit, placement, times);
  times.barrier = parse_decimal_time("--tbarrier", flags.barrier, unit);
  if (std::max(times.forward.front(), times.backward_input.front()) == Ticks())
    refuse_flag("--tf", "cannot be 0 if '--tb' is 0 as well", "set --tf to a positive time");
  return times;
}

/// Bounds by propagation if all micro-batches take one route unsliced; else by routes and work.
void add_bounds(ScheduleFigures& f, const StageTimes& times, const std::vector<int>& caps) {
  const Schedule& schedule = f.schedule;
  SynthesisRequest request{.placement = schedule.placement,
                           .microbatches = schedule.microbatch_count,
                           .times = times,
                           .caps = caps,
                           .seeds = {}};
  const bool is_plain = schedule.slices_per_microbatch == 1 && schedule.output_barriers == 0;
  if (is_plain && !problem_of(request)) {
    f.makespan_bound = lower_bound_of(request, f.timing.makespan);
    request.objective = ScheduleObjective::kPeriod;
    f.period_bound = lower_bound_of(request, f.timing.period);
    return;
  }
  f.makespan_bound = route_bound(schedule, times);
  f.period_bound = busiest_device_work(schedule, times);
}

void take_timing(ScheduleFigures& f, const StageTimes& times) {
  f.timing = time_schedule(f.schedule, times);
  for (double& peak : f.timing.peak_activations) peak /= f.schedule.slices_per_microbatch;
  if (f.weight_versions.empty()) f.weight_versions.assign(f.schedule.orders.size(), 1);
}

ScheduleRequest request_of(const ScheduleFlags& flags, const ScheduleRule& rule) {
  ScheduleRequest request;
  request.devices = *flags.stages;
  request.microbatches = *flags.microbatches;
  request.chunks = flags.chunks.value_or(1);
  request.slices = flags.slices;
  if (!flags.chunks && rule.problem(request)) {
    request.chunks = 2;  // required by the V schedules
    if (rule.problem(request)) request.chunks = 1;
  }
  if (flags.cap) request.activation_cap = *flags.cap;
  return request;
}

/// The activation cap of a device, in stage micro-batches.
int held_cap(const ScheduleFlags& flags, const Schedule& schedule) {
  const auto stages = static_cast<int>(schedule.placement.device_of_stage.size());
  const int replicas = static_cast<int>(schedule.placement.routes.size());
  return *flags.cap * (stages / schedule.placement.devices / replicas) *
         schedule.slices_per_microbatch;
}

bool keeps_cap(const ScheduleFlags& flags, const Schedule& schedule) {
  const std::vector<int> peaks = peak_held_microbatches(schedule);
  return !flags.cap || *std::max_element(peaks.begin(), peaks.end()) <= held_cap(flags, schedule);
}

/// The fastest named schedule within the cap; empty if there is none.
std::string nearest_within_cap(const ScheduleFlags& flags) {
  std::string nearest;
  Ticks best = Ticks::max();
  for (const ScheduleRule& rule : schedule_rules()) {
    ScheduleRequest request = request_of(flags, rule);
    request.slices.reset();
    if (!rule.worth_searching || rule.problem(request)) continue;
    const StageTimes times = times_of(flags, rule.placement(request));
    request.times = times;
    const Schedule schedule = rule.generate(request);
    if (!keeps_cap(flags, schedule)) continue;
    const Ticks makespan = time_schedule(schedule, times).makespan;
    if (makespan < best) best = makespan, nearest = rule.name;
  }
  return nearest;
}

[[noreturn]] void reject_peak(const ScheduleFlags& flags, const ScheduleFigures& f) {
  const auto& peaks = f.timing.peak_activations;
  const auto most = std::max_element(peaks.begin(), peaks.end());
  const std::string nearest = nearest_within_cap(flags);
  throw InputError(Diagnostic{
      .where = "--cap",
      .what = fmt::format("'{}' holds {:.4g} micro-batches on device {}, more than the cap of {}",
                          flags.name, *most, most - peaks.begin(), *flags.cap),
      .hint =
          nearest.empty()
              ? "use --name auto to synthesize a schedule within the cap"
              : fmt::format("use '{}', the fastest named schedule within the cap, or --name auto",
                            nearest)});
}

Ticks value_of(const ScheduleTiming& timing, ScheduleObjective objective) {
  return objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period;
}

/// Replaces `best` by any named schedule with the same placement that is faster and within the cap.
void offer_zoo(const SynthesisRequest& request, const ScheduleFlags& flags, ScheduleFigures& best) {
  for (const ScheduleRule& rule : schedule_rules()) {
    ScheduleRequest asked;
    asked.devices = request.placement.devices;
    asked.microbatches = request.microbatches;
    asked.chunks = flags.chunks.value_or(1);
    asked.times = request.times;
    if (rule.problem(asked) || rule.updates != UpdateTime::kAfterFlush ||
        rule.placement(asked) != request.placement)
      continue;
    ScheduleFigures named;
    named.schedule = rule.generate(asked);
    if (named.schedule.output_barriers > 0 || !keeps_cap(flags, named.schedule)) continue;
    take_timing(named, request.times);
    if (value_of(named.timing, request.objective) >= value_of(best.timing, request.objective))
      continue;
    named.origin = rule.name;
    named.schedule.name = best.schedule.name;
    best = std::move(named);
  }
}

}  // namespace

ScheduleFigures named_schedule(const ScheduleFlags& flags) {
  const ScheduleRule* rule = find_schedule_rule(flags.name);
  if (rule == nullptr) {
    std::vector<std::string> names = schedule_names();
    names.emplace_back("auto");
    throw InputError(Diagnostic{.where = "--name",
                                .what = fmt::format("unknown schedule '{}'", flags.name),
                                .hint = suggest(flags.name, names)});
  }
  ScheduleRequest request = request_of(flags, *rule);
  if (const auto problem = rule->problem(request))
    throw InputError(Diagnostic{.where = "--name " + flags.name, .what = *problem, .hint = ""});
  const StageTimes times =
      times_of(flags, rule->placement(request), std::max(1, request.slices.value_or(1)));
  request.times = times;
  ScheduleFigures f;
  f.schedule = rule->generate(request);
  for (int d = 0; d < request.devices; ++d)
    f.weight_versions.push_back(rule->weight_versions(request, PipelineRankId(d)));
  take_timing(f, times);
  std::vector<int> caps = peak_held_microbatches(f.schedule);
  if (!keeps_cap(flags, f.schedule)) reject_peak(flags, f);
  if (flags.cap) std::fill(caps.begin(), caps.end(), held_cap(flags, f.schedule));
  add_bounds(f, times, caps);
  return f;
}

namespace {

/// With several chunks, loop and wave are both tried unless --placement selects one. A V is a wave
/// of two chunks.
std::vector<Placement> placements_of(const ScheduleFlags& flags, int devices, int chunks) {
  if (flags.placement == "v" && chunks != 2)
    refuse_flag("--placement", fmt::format("placement v requires 2 chunks, got {}", chunks),
                "use --chunks 2, or --placement wave");
  std::vector<Placement> placements;
  if (flags.placement.empty() || flags.placement == "loop")
    placements.push_back(looped_placement(devices, chunks));
  if (flags.placement == "v" || flags.placement == "wave" ||
      (flags.placement.empty() && chunks > 1 && devices > 1))
    placements.push_back(wave_placement(devices, chunks));
  return placements;
}

}  // namespace

ScheduleFigures synthesized_schedule(const ScheduleFlags& flags) {
  const int devices = *flags.stages, chunks = flags.chunks.value_or(1);
  std::optional<ScheduleFigures> best;
  const bool by_makespan = flags.objective == "makespan";
  for (const Placement& placement : placements_of(flags, devices, chunks)) {
    SynthesisRequest request{.placement = placement,
                             .microbatches = *flags.microbatches,
                             .times = times_of(flags, placement),
                             .caps = {},
                             .seeds = {}};
    request.objective = by_makespan ? ScheduleObjective::kMakespan : ScheduleObjective::kPeriod;
    if (flags.cap) request.caps.assign(static_cast<std::size_t>(devices), *flags.cap * chunks);
    if (const auto problem = problem_of(request))
      refuse_flag("--cap", *problem, "use a larger cap");
    SynthesizedSchedule made = best_within_caps(request);
    ScheduleFigures f;
    f.schedule = std::move(made.schedule);
    f.origin = std::move(made.origin);
    take_timing(f, request.times);
    offer_zoo(request, flags, f);
    add_bounds(f, request.times, request.caps);
    Ticks& bound = by_makespan ? f.makespan_bound : f.period_bound;
    bound = std::max(bound, made.lower_bound);
    if (!best || value_of(f.timing, request.objective) < value_of(best->timing, request.objective))
      best = std::move(f);
  }
  return *best;
}

ScheduleFigures checked_schedule(const ScheduleFlags& flags) {
  ScheduleFigures f;
  ImportedSchedule read =
      read_schedule_csv(read_file(flags.check_file), flags.check_file, flags.check_file);
  f.schedule = std::move(read.schedule);
  std::vector<int> caps;
  if (flags.cap) caps.assign(f.schedule.orders.size(), held_cap(flags, f.schedule));
  std::vector<Diagnostic> faults;
  for (std::string& fault : check_schedule(f.schedule, caps))
    faults.push_back({.where = flags.check_file, .what = std::move(fault), .hint = ""});
  throw_if_any(faults);
  const StageTimes times = times_of(flags, f.schedule.placement);
  take_timing(f, times);
  if (caps.empty()) caps = peak_held_microbatches(f.schedule);
  add_bounds(f, times, caps);
  return f;
}

}  // namespace meshwright
