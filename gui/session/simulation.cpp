#include "gui/session/simulation.hpp"

#include <algorithm>
#include <array>
#include <future>
#include <span>

#include "core/formats/file.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/placement.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "models/text/presets.hpp"
#include "planner/search/search.hpp"
#include "planner/search/synthesized_plan.hpp"
#include "planner/synthesis/schedule_route_bounds.hpp"
#include "simulator/cost/calibrated_cost_model.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright::gui {
namespace {

constexpr std::size_t kJobsKept = 8;
/// Interactive limit: larger scenarios would take seconds and gigabytes.
constexpr std::int64_t kMostPasses = 4'000'000;

std::unique_ptr<CostModel> cost_model_of(const LoadedJob& job, const std::string& where) {
  std::unique_ptr<CostModel> by_figures = make_device_cost_model(job.cluster, job.trainer);
  if (job.calibration.empty()) return by_figures;
  return make_calibrated_cost_model(std::move(by_figures),
                                    calibration_from_json(job.calibration, where));
}

/// The published runs for the error bar; none for figures of the user's own calibration.
std::span<const ValidatedRun> validated_runs_for(const LoadedJob& job) {
  static const std::vector<ValidatedRun> kRuns =
      validated_runs_from_csv(embedded_validated_runs(), "preset validated-runs");
  return job.calibration.empty() ? std::span<const ValidatedRun>(kRuns)
                                 : std::span<const ValidatedRun>();
}

std::vector<Diagnostic> what_if_problems(const Scenario& scenario) {
  if (!sets_pass_times(scenario.what_if) || !cuts_passes(scenario.strategy)) return {};
  return {{"--zero", "manual pass times cannot be combined with ZeRO 2, ZeRO 3 or gradient buckets",
           "use ZeRO 0 or 1, or the pass times of the cost model"}};
}

std::vector<Diagnostic> size_problems(const Scenario& scenario) {
  const ParallelDegrees& d = scenario.strategy.degrees;
  const std::int64_t passes = std::int64_t{d.pipeline} * d.chunks * microbatches(scenario);
  if (passes <= kMostPasses) return {};
  return {{"--global-batch",
           "too many forward passes to display: " + std::to_string(passes) + ", at most " +
               std::to_string(kMostPasses),
           "use fewer micro-batches or stages"}};
}

std::optional<PipelineBounds> bounds_of(const Simulation& s) {
  if (!s.stage_times) return std::nullopt;
  return PipelineBounds{route_bound(s.schedule, *s.stage_times),
                        busiest_device_work(s.schedule, *s.stage_times)};
}

/// Time of one micro-batch per pipeline rank, averaged over the graph: one step, or several steps
/// of a flushless schedule.
std::vector<Ticks> times_of_pipeline_ranks(const Simulation& s) {
  std::vector<Ticks> times(static_cast<std::size_t>(s.plan.strategy.degrees.pipeline));
  int count = 0;
  for (const Task& task : s.step.graph.tasks) {
    if (task.kind > TaskKind::kBackwardWeight) continue;
    count = std::max(count, task.microbatch + 1);
    const RankInfo& rank = s.step.graph.ranks[static_cast<std::size_t>(task.rank)];
    times[static_cast<std::size_t>(rank.coordinate.pipeline)] +=
        s.step.prices[task.work.index()].duration;
  }
  for (Ticks& time : times) time = time / std::max(1, count);
  return times;
}

std::vector<SliceKind> kinds_of(const TaskGraph& graph) {
  std::array<bool, kTaskKindCount> is_there{};
  for (const Task& task : graph.tasks) is_there[static_cast<std::size_t>(task.kind)] = true;
  std::vector<SliceKind> kinds;
  for (std::size_t k = 0; k < is_there.size(); ++k)
    if (is_there[k]) kinds.push_back(slice_kind_of(static_cast<TaskKind>(k)));
  return kinds;
}

/// Computes everything about a simulated step except `tracks`.
void find_figures(const TrainingJob& job, Simulation& s) {
  EvaluatedStep evaluated = evaluate_step(job, s.step);
  s.evaluation = std::move(evaluated.evaluation);
  s.figures = figures_of(s.plan.strategy, s.evaluation, "");
  s.figures.range = range_of(s.evaluation.step_time, evaluated.error_bar);
  if (!cuts_passes(s.plan.strategy))
    s.stage_times = stage_times_of(s.step.graph, s.step.prices, s.schedule);
  s.time_of_pipeline_rank = times_of_pipeline_ranks(s);
  s.bounds = bounds_of(s);
  ScheduleRequest request = schedule_request_of(s.plan.strategy);
  request.times = s.stage_times;
  s.formula = bubble_formula(*find_schedule_rule(s.plan.strategy.schedule), request);
  s.kinds = kinds_of(s.step.graph);
}

void work_out(Simulation& s) {
  s.plan = plan_of(s.scenario, *s.job);
  s.problems = check_plan(s.plan, s.job->model, s.job->cluster);
  for (const auto& more : {what_if_problems(s.scenario), size_problems(s.scenario)})
    s.problems.insert(s.problems.end(), more.begin(), more.end());
  if (!s.problems.empty()) return;
  s.schedule = schedule_of(s.plan);
  const TrainingJob job{.plan = s.plan,
                        .model = s.job->model,
                        .cluster = s.job->cluster,
                        .cost_model = *s.job->cost_model,
                        .what_if = s.scenario.what_if,
                        .trainer = &s.job->trainer,
                        .validated_runs = validated_runs_for(*s.job)};
  s.step = simulate_step(job);
  // Figures and tracks only read the graph, so they can be computed in parallel.
  auto figures = std::async(std::launch::async, [&] { find_figures(job, s); });
  s.tracks = std::make_shared<const TimelineTracks>(timeline_tracks_of(s.step.graph, s.step.times));
  figures.get();
}

}  // namespace

std::shared_ptr<const LoadedJob> JobLibrary::load(const Scenario& s) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const Entry& entry) {
    return entry.model == s.model && entry.cluster == s.cluster &&
           entry.calibration_file == s.calibration_file;
  };
  if (const auto found = std::find_if(entries_.begin(), entries_.end(), is_it);
      found != entries_.end())
    return found->job;
  auto job = std::make_shared<LoadedJob>();
  job->model = model_from_config(s.model);
  job->cluster = cluster_from_toml(s.cluster);
  if (!s.calibration_file.empty()) job->calibration = read_file(s.calibration_file);
  job->trainer = trainer_from_toml(find_trainer(std::string(default_trainer(job->cluster))));
  job->cost_model = cost_model_of(*job, s.calibration_file);
  if (entries_.size() == kJobsKept) entries_.erase(entries_.begin());
  entries_.push_back({s.model, s.cluster, s.calibration_file, job});
  return job;
}

Plan plan_of(const Scenario& s, const LoadedJob& job) {
  Plan plan;
  plan.strategy = s.strategy;
  plan.orders = s.orders;
  plan.blocks_per_stage = s.blocks_per_stage;
  plan.device_of_stage = s.device_of_stage;
  if (!plan.blocks_per_stage.empty()) return plan;
  // The partition does not depend on the orders, and a synthesized schedule would start a search.
  Strategy named = s.strategy;
  if (named.schedule == kSynthesizedSchedule)
    named.schedule = unsynthesized_schedule(named.degrees.chunks);
  plan.blocks_per_stage =
      complete_plan(named, job.model, job.cluster, *job.cost_model).blocks_per_stage;
  return plan;
}

PlanFile plan_file_of(const Simulation& s) {
  return {.model_name = s.scenario.model.name,
          .model_config = s.scenario.model.text,
          .cluster_name = s.scenario.cluster.name,
          .cluster_toml = s.scenario.cluster.text,
          .plan = s.plan,
          .predicted = s.scenario.what_if == WhatIf{} ? std::optional(s.figures) : std::nullopt,
          .cost_model = s.job->cost_model->provenance(),
          .calibration = s.job->calibration};
}

std::shared_ptr<const Simulation> simulate_scenario(const Scenario& scenario, JobLibrary& library) {
  auto simulation = std::make_shared<Simulation>();
  simulation->scenario = scenario;
  try {
    simulation->job = library.load(scenario);
    work_out(*simulation);
  } catch (const InputError& error) {
    simulation->problems = error.diagnostics();
  }
  return simulation;
}

std::shared_ptr<const TimelineCauses> causes_of(const Simulation& s) {
  return std::make_shared<const TimelineCauses>(
      timeline_causes_of(s.step.graph, s.step.times, *s.tracks));
}

Scenario synthesized_scenario(const Scenario& scenario, JobLibrary& library) {
  const std::shared_ptr<const LoadedJob> job = library.load(scenario);
  Strategy strategy = scenario.strategy;
  strategy.schedule = kSynthesizedSchedule;
  const Plan plan = best_ordered_plan(strategy, job->model, job->cluster, *job->cost_model);
  Scenario made = scenario;
  made.strategy = plan.strategy;
  made.blocks_per_stage = plan.blocks_per_stage;
  made.orders = plan.orders;
  return made;
}

}  // namespace meshwright::gui
