#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/decimal_time.hpp"
#include "core/io_file.hpp"
#include "core/io_schedule_csv.hpp"
#include "planner/schedule_synthesis.hpp"

namespace meshwright {
namespace {

constexpr CountRange kStageRange{.smallest = 1, .largest = 256};
constexpr CountRange kChunkRange{.smallest = 1, .largest = 64};
constexpr CountRange kMicrobatchRange{.smallest = 1, .largest = 4096};
constexpr CountRange kCapRange{.smallest = 1, .largest = 1 << 20};
/// Stages x micro-batches: what an answer within a minute allows.
constexpr std::int64_t kMostStageMicrobatches = std::int64_t{1} << 17;

struct Figures {
  Schedule schedule;
  ScheduleTiming timing;
  Ticks makespan_bound, period_bound;
  std::string origin;  ///< what found it; empty for schedules with a name
};

[[noreturn]] void refuse(const std::string& flag, std::string what, std::string hint) {
  throw UsageError({.where = flag, .what = std::move(what), .hint = std::move(hint)});
}

int need(const std::optional<int>& value, const char* flag) {
  if (!value) refuse(flag, "is needed and was not given", "see meshwright schedule --help");
  return *value;
}

/// One number, one per device (shared evenly by its chunks), or one per chunk, by stage.
std::vector<Ticks> spread(const char* flag, const std::vector<std::string>& words, Ticks unit,
                          const Placement& placement, int devices) {
  const std::vector<Ticks> given = parse_decimal_times(flag, words, unit);
  const std::size_t stages = placement.device_of_stage.size(), n = given.size();
  if (n != 1 && n != stages && n != static_cast<std::size_t>(devices))
    refuse(flag, fmt::format("{} times for {} stages", n, devices),
           fmt::format("one number, or {}", devices));
  if (n == stages && n != 1 && stages != static_cast<std::size_t>(devices)) return given;
  const std::int64_t chunks = static_cast<std::int64_t>(stages) / devices;
  std::vector<Ticks> times;
  for (const PipelineRankId device : placement.device_of_stage)
    times.push_back((n == 1 ? given.front() : given[device.index()]) / chunks);
  return times;
}

StageTimes times_of(const ScheduleFlags& flags, const Placement& placement) {
  const Ticks unit = ticks_of_unit(flags.unit);
  const int devices = *flags.stages;
  StageTimes times;
  times.forward = spread("--tf", flags.forward, unit, placement, devices);
  times.backward_input = spread("--tb", flags.backward_input, unit, placement, devices);
  times.backward_weight = spread("--tw", flags.backward_weight, unit, placement, devices);
  times.latency = parse_decimal_time("--tcomm", flags.latency, unit);
  if (std::max(times.forward.front(), times.backward_input.front()) == Ticks())
    refuse("--tf", "stages that take no time have no schedule", "times above 0");
  return times;
}

/// Bounds that need one route of whole micro-batches; elsewhere the work of the busiest device.
void add_bounds(Figures& f, const StageTimes& times, const std::vector<int>& caps) {
  const Schedule& schedule = f.schedule;
  SynthesisRequest request{.placement = schedule.placement,
                           .microbatches = schedule.microbatch_count,
                           .times = times,
                           .caps = caps,
                           .seeds = {}};
  if (schedule.slices_per_microbatch == 1 && !problem_of(request)) {
    f.makespan_bound = lower_bound_of(request, f.timing.makespan);
    request.objective = ScheduleObjective::kPeriod;
    f.period_bound = lower_bound_of(request, f.timing.period);
    return;
  }
  for (const auto& order : schedule.orders) {
    Ticks work;
    for (const Action& a : order) {
      const std::size_t s = a.stage.index();
      if (a.pass == Pass::kForward) work += times.forward[s];
      if (a.pass != Pass::kForward && a.pass != Pass::kBackwardWeight)
        work += times.backward_input[s];
      if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardWeight)
        work += times.backward_weight[s];
    }
    f.makespan_bound = std::max(f.makespan_bound, work);
  }
  f.period_bound = f.makespan_bound;
}

Figures named_schedule(const ScheduleFlags& flags) {
  const ScheduleRule* rule = find_schedule_rule(flags.name);
  if (rule == nullptr) {
    std::vector<std::string> names = schedule_names();
    names.push_back("auto");
    refuse("--name", fmt::format("unknown schedule '{}'", flags.name), suggest(flags.name, names));
  }
  ScheduleRequest request;
  request.devices = *flags.stages;
  request.microbatches = *flags.microbatches;
  request.chunks = flags.chunks.value_or(1);
  if (!flags.chunks && rule->problem(request)) {
    request.chunks = 2;  // the V schedules have no other number
    if (rule->problem(request)) request.chunks = 1;
  }
  if (flags.cap) request.activation_cap = *flags.cap;
  if (const auto problem = rule->problem(request)) refuse("--name " + flags.name, *problem, "");
  const StageTimes times = times_of(flags, rule->placement(request));
  request.times = times;
  Figures f;
  f.schedule = rule->generate(request);
  f.timing = time_schedule(f.schedule, times);
  std::vector<int> caps = peak_held_microbatches(f.schedule);
  if (flags.cap) {
    const int cap = *flags.cap * request.chunks * f.schedule.slices_per_microbatch;
    const int peak = *std::max_element(caps.begin(), caps.end());
    if (peak > cap)
      refuse("--cap", fmt::format("'{}' holds more than {} micro-batches", flags.name, *flags.cap),
             "--name auto finds schedules within a cap");
    std::fill(caps.begin(), caps.end(), cap);
  }
  add_bounds(f, times, caps);
  return f;
}

/// With several chunks the loop and the wave compete.
Figures synthesised_schedule(const ScheduleFlags& flags) {
  const int devices = *flags.stages, chunks = flags.chunks.value_or(1);
  std::optional<Figures> best;
  const bool by_makespan = flags.objective == "makespan";
  std::vector<Placement> placements{looped_placement(devices, chunks)};
  if (chunks > 1 && devices > 1) placements.push_back(wave_placement(devices, chunks));
  for (const Placement& placement : placements) {
    SynthesisRequest request{.placement = placement,
                             .microbatches = *flags.microbatches,
                             .times = times_of(flags, placement),
                             .caps = {},
                             .seeds = {}};
    request.objective = by_makespan ? ScheduleObjective::kMakespan : ScheduleObjective::kPeriod;
    if (flags.cap) request.caps.assign(static_cast<std::size_t>(devices), *flags.cap * chunks);
    if (const auto problem = problem_of(request)) refuse("--cap", *problem, "a larger cap");
    SynthesizedSchedule made = synthesize(request);
    Figures f;
    f.schedule = std::move(made.schedule);
    f.timing = std::move(made.timing);
    f.origin = std::move(made.origin);
    add_bounds(f, request.times, request.caps);
    (by_makespan ? f.makespan_bound : f.period_bound) = made.lower_bound;
    const auto value = [&](const Figures& figures) {
      return by_makespan ? figures.timing.makespan : figures.timing.period;
    };
    if (!best || value(f) < value(*best)) best = std::move(f);
  }
  return *best;
}

double gap(Ticks value, Ticks bound) { return ratio(value - bound, bound); }

std::string json_text(const Figures& f, Ticks unit) {
  using Json = nlohmann::ordered_json;
  const ScheduleTiming& t = f.timing;
  const auto both = [](auto makespan, auto period) {
    return Json{{"makespan", makespan}, {"period", period}};
  };
  Json json{{"schema", 1},
            {"name", f.schedule.name},
            {"makespan", ratio(t.makespan, unit)},
            {"period", ratio(t.period, unit)},
            {"bubble", both(t.makespan_bubble, t.period_bubble)},
            {"lower_bound", both(ratio(f.makespan_bound, unit), ratio(f.period_bound, unit))},
            {"gap", both(gap(t.makespan, f.makespan_bound), gap(t.period, f.period_bound))},
            {"proved_optimal", both(t.makespan == f.makespan_bound, t.period == f.period_bound)},
            {"peak_activations", t.peak_activations}};
  Json& orders = json["orders"] = Json::array();
  for (const auto& order : f.schedule.orders) {
    Json& words = orders.emplace_back(Json::array());
    for (const Action& action : order) words.push_back(to_text(std::span(&action, 1)));
  }
  constexpr int kIndent = 2;
  return json.dump(kIndent) + "\n";
}

std::string human_text(const Figures& f, const ScheduleFlags& flags) {
  const Ticks unit = ticks_of_unit(flags.unit);
  const auto line = [&](const char* name, Ticks value, double bubble, Ticks bound) {
    const std::string verdict =
        value == bound ? "proved optimal"
                       : fmt::format("within {:.3g} % of the bound {:.10g} {}",
                                     100 * gap(value, bound), ratio(bound, unit), flags.unit);
    return fmt::format("{:<9} {:.10g} {}, bubble {:.2f} %, {}\n", name, ratio(value, unit),
                       flags.unit, 100 * bubble, verdict);
  };
  const ScheduleTiming& t = f.timing;
  std::string text = fmt::format(
      "{}: {} devices, {} stages, {} micro-batches{}\n", f.schedule.name,
      f.schedule.placement.devices, f.schedule.placement.device_of_stage.size(),
      f.schedule.microbatch_count, f.origin.empty() ? "" : fmt::format("; found by {}", f.origin));
  text += line("makespan", t.makespan, t.makespan_bubble, f.makespan_bound);
  text += line("period", t.period, t.period_bubble, f.period_bound);
  text += fmt::format("peak      {:.4g} micro-batches per device\n",
                      fmt::join(t.peak_activations, " "));
  constexpr std::size_t kMostShown = 64;
  for (std::size_t d = 0; d < f.schedule.orders.size(); ++d)
    if (f.schedule.orders[d].size() <= kMostShown)
      text += fmt::format("device {}: {}\n", d, to_text(f.schedule.orders[d]));
  return text;
}

}  // namespace

CLI::App* add_schedule_command(CLI::App& app, ScheduleFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "schedule", "Order the work of a pipeline: a schedule by name, or one made to measure.");
  command->add_option("--name", flags.name, "a schedule, or auto")->type_name("NAME");
  add_count(*command, "--stages", flags.stages, kStageRange, "devices of the pipeline");
  add_count(*command, "--microbatches", flags.microbatches, kMicrobatchRange, "micro-batches");
  add_count(*command, "--chunks", flags.chunks, kChunkRange, "stages on each device");
  const auto add_times = [&](const char* flag, std::vector<std::string>& words, const char* what) {
    command->add_option(flag, words, what)->type_name("T...")->expected(1, 1 << 14);
  };
  add_times("--tf", flags.forward, "forward: one time, one per device, or one per chunk");
  add_times("--tb", flags.backward_input, "gradient of the input, likewise");
  add_times("--tw", flags.backward_weight, "gradient of the weights, likewise");
  command->add_option("--tcomm", flags.latency, "from device to device")->type_name("T");
  command->add_option("--unit", flags.unit, "of all times")->type_name("s|ms|us|ns");
  add_count(*command, "--cap", flags.cap, kCapRange, "micro-batches a device may hold");
  command->add_option("--objective", flags.objective, "what auto makes small")
      ->check(CLI::IsMember({"makespan", "period"}))
      ->type_name("makespan|period");
  command->add_option("--csv", flags.csv_file, "write PyTorch's schedule CSV")->type_name("FILE");
  add_output_flags(*command, flags.output, "the figures and orders");
  command->footer(
      "Examples:\n"
      "  meshwright schedule --name zb-h1 --stages 4 --microbatches 8 --tf 10 --tb 10 --tw 8\n"
      "  meshwright schedule --name auto --stages 2 --microbatches 6 --tf 9,10 --tb 10,12 \\\n"
      "      --tw 7,8 --tcomm 0.25 --unit ms --cap 3 --csv order.csv");
  return command;
}

Outcome run_schedule(const ScheduleFlags& flags) {
  const std::int64_t stages =
      std::int64_t{need(flags.stages, "--stages")} * flags.chunks.value_or(1);
  if (stages * need(flags.microbatches, "--microbatches") > kMostStageMicrobatches)
    refuse("--microbatches",
           fmt::format("{} stages of {} micro-batches are too many", stages, *flags.microbatches),
           fmt::format("at most {} stages x micro-batches", kMostStageMicrobatches));
  if (flags.name.empty())
    refuse("--name", "is needed and was not given", "auto, or one that show schedules lists");
  const Figures f = flags.name == "auto" ? synthesised_schedule(flags) : named_schedule(flags);
  if (!flags.csv_file.empty()) write_file(flags.csv_file, write_schedule_csv(f.schedule));
  return deliver(flags.output.json ? json_text(f, ticks_of_unit(flags.unit)) : human_text(f, flags),
                 flags.output);
}

}  // namespace meshwright
