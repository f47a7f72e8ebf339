#include "cli/plan/plan_search.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "cli/job/job_error.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/base/parse_quantity.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/search/node_selection.hpp"

namespace meshwright {
namespace {

constexpr int kPlansShown = 10;
constexpr int kSecondsAllowed = 10;

/// A progress line on standard error, rewritten in place; printed to terminals only.
class ProgressLine {
 public:
  void show(std::string_view what, std::int64_t done, std::int64_t of) {
    if (!is_terminal_) return;
    print_to_stderr(fmt::format("\rsearching: {} of {} {}", done, of, what));
    is_shown_ = true;
  }
  ~ProgressLine() {
    constexpr std::string_view kEraseLine = "\r\033[K";
    if (is_shown_) print_to_stderr(kEraseLine);
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool is_shown_ = false;
};

/// Plans then have as much less memory.
void keep_free(Bytes margin, Cluster& cluster) {
  for (auto& [name, device] : cluster.devices) {
    const Bytes usable = device.memory - device.reserved_memory;
    if (margin >= usable)
      throw UsageError({.where = "--margin",
                        .what = fmt::format("{} leave nothing of the {} of device '{}'",
                                            to_text(margin), to_text(usable), name),
                        .hint = "use a smaller margin, for example --margin 2GiB"});
    device.memory -= margin;
  }
}

SearchResult nothing_fits(std::string reason) {
  SearchResult result;
  result.infeasible = Infeasible{.reason = std::move(reason), .nearest = std::nullopt};
  return result;
}

/// Sets the size of the job to the fewest devices on which it fits. False if there are none.
bool find_fewest_devices(PlanSearch& search, const PlanFlags& flags) {
  const Cluster& cluster = search.cluster->cluster;
  const int most = device_count(cluster);
  search.fewest_devices =
      fewest_devices(sizing_job(search, flags.choices), all_sizes(cluster), sizing_options(flags));
  stop_if_interrupted();
  throw_if_any(search.fewest_devices->problems);
  search.goal.gpus = search.fewest_devices->devices.value_or(most);
  if (search.fewest_devices->devices) return true;
  search.result = nothing_fits(fmt::format("the job fits on no number of GPUs up to {}", most));
  return false;
}

bool find_longest_sequence(PlanSearch& search, const PlanFlags& flags) {
  search.longest_sequence = longest_sequence(sizing_job(search, flags.choices),
                                             kSequenceRange.largest, sizing_options(flags));
  stop_if_interrupted();
  throw_if_any(search.longest_sequence->problems);
  search.goal.sequence_length =
      search.longest_sequence->length.value_or(search.longest_sequence->unit);
  if (search.longest_sequence->length) return true;
  search.result = nothing_fits(
      fmt::format("not even sequences of {} tokens fit", search.longest_sequence->unit));
  return false;
}

void search_plans(PlanSearch& search_run, const PlanFlags& flags) {
  ProgressLine progress;
  const std::function<Seconds()> elapsed = start_clock();
  const std::optional<Seconds> limit = time_limit_of(flags);
  const SizingJob job = sizing_job(search_run, flags.choices);
  search_run.result =
      search(job.model, job.cluster, job.cost_model, job.goal, job.choices,
             {.top = flags.top.value_or(kPlansShown),
              .threads = flags.threads.value_or(0),
              .progress = [&](std::int64_t done,
                              std::int64_t of) { progress.show("candidates", done, of); },
              .canceled = is_interrupted,
              .is_out_of_time = [&] { return limit && elapsed() > *limit; },
              .selects_nodes = true,
              .refines = true,
              .tries_shares = true,
              .per_layer = flags.per_layer});
  search_run.time = elapsed();
  if (search_run.result.plans.empty()) stop_if_interrupted();
}

void check_per_layer(const PlanCluster& on) {
  if (!is_homogeneous(on.cluster))
    refuse_flag("--per-layer", "not supported on clusters with several node types",
                "plan for the nodes of one type, or without --per-layer");
  constexpr std::string_view kWord = "layer-options";
  if (!on.is_trainer_named || accepts(on.trainer.abilities.any, Ability::kOptions, kWord)) return;
  refuse_flag("--per-layer", fmt::format("{} has no per-layer options", on.trainer.name),
              "remove --trainer, or plan without --per-layer");
}

/// A job that barely fits: finding its first plan can take longer than the time limit.
void search_largest_job(PlanSearch& search_run, const PlanFlags& flags) {
  SizingOptions options = sizing_options(flags);
  options.top = flags.top.value_or(kPlansShown);
  const SizingJob job = sizing_job(search_run, flags.choices);
  SizingResult result = search_all({&job, 1}, options).front();
  throw_if_any(result.problems);
  if (result.search) search_run.result = std::move(*result.search);
  search_run.time = result.time;
  if (search_run.result.plans.empty()) stop_if_interrupted();
}

}  // namespace

PlanModel load_plan_model(const std::string& name) {
  NamedText text = find_model(name);
  ModelGraph graph = load_model_and_warn(text);
  return {.text = std::move(text), .graph = std::move(graph)};
}

std::function<Seconds()> start_clock() {
  return [start = std::chrono::steady_clock::now()] {
    return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
}

std::optional<Seconds> time_limit_of(const PlanFlags& flags) {
  const int seconds = flags.time_limit.value_or(kSecondsAllowed);
  return seconds > 0 ? std::optional(Seconds(seconds)) : std::nullopt;
}

PlanCluster load_plan_cluster(const std::string& name, const SourceFlags& sources, Bytes margin) {
  PlanCluster loaded;
  loaded.text = find_cluster(name, sources.calibration);
  loaded.cluster = cluster_from_toml(loaded.text);
  loaded.calibration = calibration_for(loaded.cluster, sources.calibration);
  keep_free(margin, loaded.cluster);
  loaded.memory_margin = margin;
  loaded.trainer = trainer_for(loaded.cluster, sources.trainer);
  loaded.is_trainer_named = !sources.trainer.empty();
  loaded.cost_model = make_cost_model(loaded.cluster, loaded.trainer, loaded.calibration);
  return loaded;
}

SizingJob sizing_job(const PlanSearch& search, const FixedChoices& choices) {
  SizingJob job{.model = search.model->graph,
                .cluster = search.cluster->cluster,
                .cost_model = *search.cluster->cost_model,
                .goal = search.goal,
                .choices = choices};
  if (search.cluster->is_trainer_named) job.choices.trainer = search.cluster->trainer;
  return job;
}

void set_figures(PlanSearch& search, const std::optional<PlannedRun>& run) {
  const PlanCluster& on = *search.cluster;
  search.validation = on.cost_model->validation();
  for (const RankedPlan& ranked : search.result.plans) {
    const Cluster cluster = nodes_of_row(on.cluster, ranked);
    const std::optional<ErrorBar> bar =
        error_bar_of(ranked.plan.strategy, search.model->graph, cluster, on.trainer,
                     ranked.evaluation, on.calibration.has_value());
    if (search.figures.empty()) search.validation = validation_text(bar, *on.cost_model);
    PlanFigures figures = figures_of(ranked.plan.strategy, ranked.evaluation, ranked.why);
    figures.range = range_of(figures.step_time, bar);
    if (run)
      search.costs.push_back(cost_of_run(*run, goal_of_row(search.goal, ranked), cluster, figures));
    search.figures.push_back(std::move(figures));
  }
}

SizingOptions sizing_options(const PlanFlags& flags) {
  const auto progress = std::make_shared<ProgressLine>();
  return {.threads = flags.threads.value_or(0),
          .elapsed = start_clock(),
          .time_limit = time_limit_of(flags),
          .canceled = is_interrupted,
          .progress = [progress](std::size_t done, std::size_t of) {
            progress->show("searches", static_cast<std::int64_t>(done),
                           static_cast<std::int64_t>(of));
          }};
}

PlanSearch search_once(const PlanFlags& flags, const PlanRequest& request, const PlanModel& model,
                       const PlanCluster& cluster) {
  PlanSearch search_run;
  search_run.model = &model;
  search_run.cluster = &cluster;
  search_run.goal = {.gpus = request.gpus.empty() ? 1 : request.gpus.front().smallest,
                     .global_batch = request.global_batch,
                     .sequence_length = request.sequence_length.value_or(kSequenceUnit)};
  if (flags.per_layer) check_per_layer(cluster);
  const bool is_largest_job = request.gpus.empty() || !request.sequence_length;
  if ((!request.gpus.empty() || find_fewest_devices(search_run, flags)) &&
      (request.sequence_length || find_longest_sequence(search_run, flags)))
    (is_largest_job ? search_largest_job : search_plans)(search_run, flags);
  set_figures(search_run, request.run);
  return search_run;
}

PlanFile plan_file_of(const PlanSearch& search) {
  const PlanCluster& on = *search.cluster;
  const std::vector<NodeGroup>& nodes = search.result.plans.front().nodes;
  return {.model_name = search.model->text.name,
          .model_config = search.model->text.text,
          .cluster_name = on.text.name,
          .cluster_toml = nodes.empty()
                              ? on.text.text
                              : cluster_to_toml(with_nodes(cluster_from_toml(on.text), nodes)),
          .plan = search.result.plans.front().plan,
          .predicted = search.figures.front(),
          .cost_model = on.cost_model->provenance(),
          .calibration = text_of(on.calibration),
          .trainer_name = on.trainer.name,
          .trainer_toml = to_toml(on.trainer)};
}

}  // namespace meshwright
