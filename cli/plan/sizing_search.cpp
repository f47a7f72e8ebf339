#include "cli/plan/sizing_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "cli/terminal/interrupt.hpp"
#include "planner/search/node_selection.hpp"
#include "planner/sizing/pareto_front.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kMostPoints = 256;

/// The sizes of --gpus on one cluster, ascending.
std::set<int> sizes_on(const PlanCluster& on, const std::vector<SizeRange>& ranges) {
  std::set<int> sizes;
  for (const SizeRange& range : ranges) {
    if (range.smallest == range.largest) {
      sizes.insert(range.smallest);
      continue;
    }
    const std::vector<int> in_range = sizes_in(range, on.cluster);
    if (in_range.empty())
      throw InputError(
          {.where = "--gpus",
           .what = fmt::format("no size from {} to {}: sizes are powers of two, alone "
                               "or times nodes of {} GPUs",
                               range.smallest, range.largest,
                               fmt::join(node_sizes(on.cluster), " or ")),
           .hint = fmt::format("list the sizes: --gpus {},{}", range.smallest, range.largest)});
    sizes.insert(in_range.begin(), in_range.end());
  }
  return sizes;
}

/// InputError for sizes that no cluster has.
void check_sizes(const std::vector<SizeRange>& ranges, const std::vector<PlanCluster>& clusters) {
  const auto largest = std::ranges::max_element(
      clusters, {}, [](const PlanCluster& on) { return device_count(on.cluster); });
  const int most = device_count(largest->cluster);
  for (const SizeRange& range : ranges)
    if (range.largest > most)
      throw InputError({.where = "--gpus",
                        .what = fmt::format("{} devices requested, but cluster '{}' has {}",
                                            range.largest, largest->text.name, most),
                        .hint = fmt::format("use at most {}", most)});
}

void take_result(SizingPoint& point, SizingResult result, const PlanRequest& request) {
  point.problems = std::move(result.problems);
  if (!result.search) return;
  point.is_searched = true;
  point.search.result = std::move(*result.search);
  point.search.time = result.time;
  set_figures(point.search, request.run);
}

/// Searches the points in their order, and drops those after the first that meets the deadline.
void search_until_deadline(std::vector<SizingPoint>& points, const PlanFlags& flags,
                           const PlanRequest& request) {
  std::vector<SizingJob> jobs;
  jobs.reserve(points.size());
  for (const SizingPoint& point : points) jobs.push_back(sizing_job(point.search, flags.choices));
  const auto meets_deadline = [&](const SizingJob& job, const SizingResult& result) {
    if (!result.search || result.search->plans.empty()) return false;
    const RankedPlan& best = result.search->plans.front();
    const auto cost =
        cost_of_run(*request.run, goal_of_row(job.goal, best), nodes_of_row(job.cluster, best),
                    figures_of(best.plan.strategy, best.evaluation, ""));
    return cost && cost->time <= *request.deadline;
  };
  std::vector<SizingResult> results = search_until(jobs, sizing_options(flags), meets_deadline);
  if (!is_interrupted()) points.resize(results.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    take_result(points[i], std::move(results[i]), request);
}

/// --gpus auto: the fewest devices that fit; with a deadline, larger sizes up to the first that
/// meets it, searched.
std::vector<SizingPoint> automatic_points(const SizingPoint& like, const PlanFlags& flags,
                                          const PlanRequest& request) {
  const Cluster& cluster = like.search.cluster->cluster;
  const int most = device_count(cluster);
  const FewestDevices fewest = fewest_devices(sizing_job(like.search, flags.choices),
                                              all_sizes(cluster), sizing_options(flags));
  stop_if_interrupted();
  SizingPoint point = like;
  point.search.fewest_devices = fewest;
  point.search.goal.gpus = fewest.devices.value_or(most);
  point.problems = fewest.problems;
  if (!fewest.devices && point.problems.empty())
    point.problems = {{"--gpus", fmt::format("no plan fits on any number of GPUs up to {}", most),
                       "use another cluster"}};
  std::vector<SizingPoint> points{point};
  if (!fewest.devices || !request.deadline) return points;
  for (const int size : sizes_in({*fewest.devices + 1, most}, cluster)) {
    point.search.goal.gpus = size;
    points.push_back(point);
  }
  search_until_deadline(points, flags, request);
  return points;
}

std::vector<SizingPoint> points_of(const PlanFlags& flags, const PlanRequest& request,
                                   const std::vector<PlanModel>& models,
                                   const std::vector<PlanCluster>& clusters) {
  check_sizes(request.gpus, clusters);
  std::vector<SizingPoint> points;
  for (const PlanModel& model : models)
    for (const PlanCluster& on : clusters) {
      SizingPoint point;
      point.search.model = &model;
      point.search.cluster = &on;
      point.search.goal = {.gpus = 1,
                           .global_batch = request.global_batch,
                           .sequence_length = request.sequence_length.value_or(kSequenceUnit)};
      if (request.gpus.empty()) {
        std::ranges::move(automatic_points(point, flags, request), std::back_inserter(points));
        continue;
      }
      for (const int size : sizes_on(on, request.gpus)) {
        point.search.goal.gpus = size;
        points.push_back(point);
      }
    }
  if (points.size() > kMostPoints)
    throw UsageError(
        {.where = "--gpus",
         .what = fmt::format("{} searches are more than {}", points.size(), kMostPoints),
         .hint = "use fewer sizes, clusters or models"});
  return points;
}

void search_points(std::vector<SizingPoint>& points, const PlanFlags& flags,
                   const PlanRequest& request) {
  std::vector<SizingJob> jobs;
  std::vector<SizingPoint*> searched;
  for (SizingPoint& point : points) {
    if (point.is_searched || !point.problems.empty()) continue;
    jobs.push_back(sizing_job(point.search, flags.choices));
    searched.push_back(&point);
  }
  std::vector<SizingResult> results = search_all(jobs, sizing_options(flags));
  for (std::size_t i = 0; i < results.size(); ++i)
    take_result(*searched[i], std::move(results[i]), request);
}

/// A problem that all points share is not one of their sizes.
void throw_common_problems(const std::vector<SizingPoint>& points) {
  const std::vector<Diagnostic>& first = points.front().problems;
  if (std::ranges::all_of(points, [&](const SizingPoint& p) { return p.problems == first; }))
    throw_if_any(first);
}

/// What the plan of a point costs; without --tokens of one step.
Tradeoff tradeoff_of(const SizingPoint& point, const PlanRequest& request) {
  const PlanSearch& search = point.search;
  const PlannedRun one_step{.tokens = tokens_per_step(search.goal)};
  const RankedPlan& best = search.result.plans.front();
  const std::optional<RunCost> cost =
      cost_of_run(request.run.value_or(one_step), goal_of_row(search.goal, best),
                  nodes_of_row(search.cluster->cluster, best), search.figures.front());
  return {.time = cost->time, .devices = gpus_of(point), .cost = cost->cost};
}

void mark_front(std::vector<SizingPoint>& points, const PlanModel& model,
                const PlanRequest& request) {
  std::vector<SizingPoint*> compared;
  std::vector<Tradeoff> tradeoffs;
  for (SizingPoint& point : points) {
    if (point.search.model != &model || !time_of(point)) continue;
    compared.push_back(&point);
    tradeoffs.push_back(tradeoff_of(point, request));
  }
  const std::vector<bool> front = pareto_front(tradeoffs);
  for (std::size_t i = 0; i < front.size(); ++i) compared[i]->is_on_front = front[i];
}

std::optional<std::size_t> recommended_point(const std::vector<SizingPoint>& points) {
  // Points that meet the deadline first, by GPUs; then all others, by time.
  const auto rank = [&](std::size_t i) {
    const SizingPoint& point = points[i];
    const double time = time_of(point)->value;
    return std::tuple(!point.meets_deadline, point.meets_deadline ? gpus_of(point) : 0, time,
                      gpus_of(point));
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (time_of(points[i]) && (!best || rank(i) < rank(*best))) best = i;
  return best;
}

}  // namespace

int gpus_of(const SizingPoint& point) {
  const PlanSearch& search = point.search;
  return search.result.plans.empty() ? search.goal.gpus
                                     : goal_of_row(search.goal, search.result.plans.front()).gpus;
}

std::optional<Seconds> time_of(const SizingPoint& point) {
  if (point.search.figures.empty()) return std::nullopt;
  if (point.search.costs.empty()) return to_seconds(point.search.figures.front().step_time);
  const std::optional<RunCost>& cost = point.search.costs.front();
  return cost ? std::optional(cost->time) : std::nullopt;
}

void judge_points(Sizing& sizing, const PlanRequest& request) {
  std::set<const PlanModel*> models;
  for (SizingPoint& point : sizing.points) {
    const std::optional<Seconds> time = time_of(point);
    point.meets_deadline = request.deadline && time && *time <= *request.deadline;
    models.insert(point.search.model);
  }
  for (const PlanModel* model : models) mark_front(sizing.points, *model, request);
  if (models.size() == 1) sizing.recommended = recommended_point(sizing.points);
}

Sizing size_clusters(const PlanFlags& flags, const PlanRequest& request,
                     const std::vector<PlanModel>& models,
                     const std::vector<PlanCluster>& clusters) {
  const SizingOptions clock = sizing_options(flags);
  Sizing sizing;
  sizing.points = points_of(flags, request, models, clusters);
  search_points(sizing.points, flags, request);
  throw_common_problems(sizing.points);
  judge_points(sizing, request);
  sizing.time = clock.elapsed();
  return sizing;
}

}  // namespace meshwright
