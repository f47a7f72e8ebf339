#include "planner/search/sweep.hpp"

#include <mutex>
#include <new>

#include "planner/parallel/parallel_for.hpp"
#include "planner/search/search.hpp"
#include "planner/search/stage_partition.hpp"
#include "planner/search/trainer_choices.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

void mark_failed(SweepPoint& point, Diagnostic problem) {
  point.figures.reset();
  point.problems = {std::move(problem)};
  point.has_failed = true;
}

SweepPoint evaluate_point(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                          const CostModel& cost_model, const Trainer* trainer) {
  SweepPoint point{.strategy = strategy, .figures = std::nullopt, .problems = {}};
  try {
    Plan plan = complete_plan(strategy, model, cluster, cost_model);
    if (trainer != nullptr && !cuts_freely(*trainer))
      plan.blocks_per_stage =
          even_cut(block_count(model), static_cast<int>(plan.blocks_per_stage.size()));
    point.problems = check_plan(plan, model, cluster);
    if (point.problems.empty() && trainer != nullptr)
      point.problems = trainer_problems(plan, *trainer);
    if (point.problems.empty())
      point.figures =
          figures_of(plan.strategy, predict({plan, model, cluster, cost_model}).evaluation, "");
  } catch (const InputError& error) {
    point.problems = error.diagnostics();
  } catch (const std::bad_alloc&) {
    mark_failed(point, {"this machine", "out of memory", "use fewer threads or a larger machine"});
  } catch (const std::exception& error) {
    mark_failed(point, {"internal error", error.what(),
                        "report this bug, with the command line and the input files"});
  }
  return point;
}

}  // namespace

std::vector<SweepPoint> sweep(std::span<const Strategy> strategies, const ModelGraph& model,
                              const Cluster& cluster, const CostModel& cost_model,
                              const SweepOptions& options) {
  std::vector<SweepPoint> points(strategies.size());
  std::mutex mutex;
  parallel_for(strategies.size(), thread_count(options.threads), [&](std::size_t i) {
    points[i].strategy = strategies[i];
    if (options.canceled && options.canceled()) return;
    points[i] = evaluate_point(strategies[i], model, cluster, cost_model, options.trainer);
    if (!options.on_point) return;
    const std::lock_guard lock(mutex);
    options.on_point(i, points[i]);
  });
  return points;
}

}  // namespace meshwright
