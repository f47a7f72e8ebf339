#include "planner/search/tried_plan.hpp"

#include "core/base/error.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/placement.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "planner/search/bounds.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/memory_screen.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

std::optional<Plan> completed_plan(const Strategy& strategy, const SearchJob& job) {
  try {
    return complete_plan(strategy, job.model, job.cluster, job.cost_model);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Ticks step_bound_of(const Plan& plan, const SearchJob& job) {
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  if (!is_homogeneous(job.cluster) || rule == nullptr || rule->output_barriers > 0) return {};
  const Placement placement = placement_of(plan);
  const std::vector<PassTimes> parts =
      stage_passes(layer_costs(plan.strategy, job.model, job.cluster, job.cost_model).passes,
                   plan.blocks_per_stage, plan.strategy.recompute);
  StepEndTimes no_end;
  no_end.reduction.assign(static_cast<std::size_t>(placement.devices), Ticks());
  return step_bound(placement, parts, microbatch_count(plan.strategy), /*splits_backward=*/true,
                    no_end);
}

std::optional<Ticks> step_time_of(const Plan& plan, const SearchJob& job, Ticks limit) {
  if (job.fixed.trainer && !can_run(job.fixed.trainer->abilities, plan)) return std::nullopt;
  if (!check_plan(plan, job.model, job.cluster).empty()) return std::nullopt;
  if (step_bound_of(plan, job) >= limit) return std::nullopt;
  const TaskGraph graph = lower(plan, job.model, job.cluster, {.memory = job.cost_model.memory()});
  if (shortfall_of(graph, job_facts(plan.strategy, job.model, job.cluster))) return std::nullopt;
  thread_local SimulatedTimes times;  // reuses its memory
  simulate(graph, price_works(graph.parts, graph.works, job.cost_model), times);
  return makespan(times);
}

}  // namespace meshwright
