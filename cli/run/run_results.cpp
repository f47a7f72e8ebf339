#include "cli/run/run_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/reports/report.hpp"
#include "cli/run/run_device.hpp"
#include "core/formats/pftrace.hpp"
#include "executor/runs/measured_timeline.hpp"
#include "simulator/variation/variation.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

bool was_interrupted(const TrainingRun& run) { return run.failure.has_value(); }

double milliseconds(Ticks time) { return to_seconds(time).value * 1e3; }

std::string progress_text(const RunResults& results) {
  const std::size_t steps = results.run.steps.size();
  if (!was_interrupted(results.run)) return fmt::format("{} steps", steps);
  return fmt::format("interrupted after {} of {} steps", steps, results.length.steps);
}

}  // namespace

Ticks step_time(const MeasuredStep& step) { return step.duration; }

StepSpread spread_of(const TrainingRun& run) {
  std::vector<std::size_t> steps;
  for (std::size_t i = run.steps.size() > 1 ? 1 : 0; i < run.steps.size(); ++i) steps.push_back(i);
  std::stable_sort(steps.begin(), steps.end(), [&](std::size_t a, std::size_t b) {
    return step_time(run.steps[a]) < step_time(run.steps[b]);
  });
  const auto time = [&](std::size_t place) { return step_time(run.steps[steps[place]]); };
  const std::size_t n = steps.size();
  // The step with times that is nearest to the median.
  const auto distance = [&](std::size_t place) {
    return place < n / 2 ? n / 2 - place : place - n / 2;
  };
  std::size_t median = n / 2;
  for (std::size_t place = 0; place < n; ++place) {
    const bool has_times = !run.steps[steps[place]].times.start.empty();
    const bool median_has = !run.steps[steps[median]].times.start.empty();
    if (has_times && (!median_has || distance(place) < distance(median))) median = place;
  }
  return {.least = time(0),
          .first_quartile = time(n / 4),
          .median = time(n / 2),
          .third_quartile = time(3 * n / 4),
          .median_step = steps[median],
          .count = n};
}

std::string results_text(const RunResults& results) {
  std::string text = fmt::format("{} ({} clock)", progress_text(results), results.flags.clock);
  if (results.run.validation_loss)
    text += fmt::format(": validation loss {:.4f}", *results.run.validation_loss);
  if (results.run.steps.empty()) return text + "\n";
  const StepSpread spread = spread_of(results.run);
  text += fmt::format(": median step time {:.3f} ms", milliseconds(spread.median));
  if (clock_of(results.flags) == TimelineClock::kWall && spread.count > 1)
    text += fmt::format(" (min {:.3f}, IQR {:.3f} to {:.3f})", milliseconds(spread.least),
                        milliseconds(spread.first_quartile), milliseconds(spread.third_quartile));
  const MeasuredStep& last = results.run.steps.back();
  text += fmt::format(", final loss {:.4f}", last.loss);
  if (last.validation_loss) text += fmt::format(", validation loss {:.4f}", *last.validation_loss);
  return text + "\n";
}

std::string results_json(const RunResults& results) {
  const TrainingRun& run = results.run;
  Json steps = Json::array();
  for (const MeasuredStep& step : run.steps)
    steps.push_back(
        {{"loss", step.loss},
         {"validation_loss", step.validation_loss ? Json(*step.validation_loss) : Json()},
         {"step_time_ns", to_nanoseconds(step_time(step))}});
  Json memory = Json::array();
  for (const MemoryAmounts& peak : run.peak_memory) memory.push_back(total(peak).value);
  Json json{{"schema", 1},
            {"ranks", results.flags.ranks},
            {"clock", results.flags.clock},
            {"interrupted", was_interrupted(run)},
            {"step_time_ns", nullptr},
            {"step_time_spread", nullptr},
            {"steps", steps},
            {"peak_memory_bytes_per_rank", memory}};
  if (run.validation_loss) json["validation_loss"] = *run.validation_loss;
  if (!run.steps.empty()) {
    const StepSpread spread = spread_of(run);
    json["step_time_ns"] = to_nanoseconds(spread.median);
    json["step_time_spread"] = {{"steps", spread.count},
                                {"least_ns", to_nanoseconds(spread.least)},
                                {"first_quartile_ns", to_nanoseconds(spread.first_quartile)},
                                {"third_quartile_ns", to_nanoseconds(spread.third_quartile)}};
  }
  return json.dump(2) + "\n";
}

std::string results_trace(const RunResults& results) {
  const TrainingRun& run = results.run;
  Timeline timeline;
  if (std::ranges::any_of(run.steps,
                          [](const MeasuredStep& step) { return !step.times.start.empty(); }))
    timeline = measured_timeline(
        results.graph, run,
        results.flags.all_steps ? std::nullopt : std::optional(spread_of(run).median_step));
  else if (run.unfinished)
    timeline = timeline_of(results.graph, run.unfinished->times, run.unfinished->is_done);
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.clock = clock_of(results.flags);
  timeline.provenance["program"] = "meshwright " MESHWRIGHT_VERSION;
  timeline.provenance["model"] = results.job.file.model_name;
  timeline.provenance["strategy"] = strategy_text(results.job.file.plan.strategy);
  timeline.provenance["kernels"] = kernels_text(results.flags.device);
  timeline.provenance["ranks"] = results.flags.ranks;
  timeline.provenance["steps"] = progress_text(results);
  if (clock_of(results.flags) == TimelineClock::kWall)
    timeline.provenance["links"] =
        links_of(results.flags) == LinkTime::kModeled ? "modelled" : "real";
  return to_pftrace(timeline);
}

}  // namespace meshwright
