#include "planner/search/synthesized_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/lowering/lower.hpp"
#include "core/plan/placement.hpp"
#include "planner/parallel/parallel_for.hpp"
#include "planner/search/bounds.hpp"
#include "planner/search/layer_times.hpp"
#include "planner/search/mixed_stages.hpp"
#include "planner/search/space.hpp"
#include "planner/synthesis/schedule_front.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

/// Limit of stages x micro-batches: synthesis takes about a second.
constexpr std::int64_t kMostStageMicrobatches = 1 << 13;
/// Rows of a search result for which orders are synthesized.
constexpr std::size_t kRowsSynthesized = 4;

bool can_be_synthesized(const Plan& plan) {
  const ParallelDegrees& d = plan.strategy.degrees;
  return d.pipeline > 1 && (d.chunks == 1 || d.chunks % 2 == 0) &&
         plan.blocks_per_stage.size() == static_cast<std::size_t>(stage_count(d)) &&
         stage_count(d) * microbatch_count(plan.strategy) <= kMostStageMicrobatches;
}

/// The slowest message between stages, including the time that occupies its sender.
Ticks message_time(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                   const CostModel& cost_model) {
  const TaskGraph graph = lower(plan, model, cluster);
  const std::vector<WorkPrice> prices = price_works(graph.parts, graph.works, cost_model);
  Ticks longest;
  for (std::size_t w = 0; w < graph.works.size(); ++w)
    if (graph.works[w].kind == TaskKind::kSend)
      longest = std::max(longest, prices[w].duration + prices[w].latency);
  return longest;
}

std::vector<PassTimes> passes_of_stages(const Plan& plan, const ModelGraph& model,
                                        const Cluster& cluster, const CostModel& cost_model) {
  const Strategy& strategy = plan.strategy;
  if (is_homogeneous(cluster))
    return stage_passes(layer_costs(strategy, model, cluster, cost_model).passes,
                        plan.blocks_per_stage, strategy.recompute);
  std::vector<LayerCosts> by_kind;
  for (std::size_t kind = 0; kind < cluster.groups.size(); ++kind)
    by_kind.push_back(layer_costs(strategy, model, cluster,
                                  cost_model.on_nodes(static_cast<std::int32_t>(kind))));
  const MixedStages mixed = mixed_layer_costs(on_all_kinds(by_kind), strategy, cluster).mixed;
  return mixed_stage_passes(mixed, kinds_of_parts(mixed, placement_of(plan)), plan.blocks_per_stage,
                            strategy.recompute, false);
}

StageTimes stage_times_of(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                          const CostModel& cost_model) {
  StageTimes times;
  for (const PassTimes& pass : passes_of_stages(plan, model, cluster, cost_model)) {
    times.forward.push_back(pass.forward);
    times.backward_input.push_back(pass.backward_input);
    times.backward_weight.push_back(pass.backward - pass.backward_input);
  }
  times.latency = message_time(plan, model, cluster, cost_model);
  return times;
}

/// All forwards of `microbatches`, then all backwards: each device holds the activations of all of
/// them on all its stages.
Schedule holding(const Placement& placement, int microbatches) {
  Schedule schedule;
  schedule.placement = placement;
  schedule.microbatch_count = microbatches;
  schedule.route_of_microbatch.assign(static_cast<std::size_t>(microbatches), 0);
  schedule.orders.resize(static_cast<std::size_t>(placement.devices));
  const auto add = [&](StageId stage, Pass pass) {
    for (int mb = 0; mb < microbatches; ++mb)
      schedule.orders[placement.device_of_stage[stage.index()].index()].push_back(
          {stage, pass, MicrobatchId(mb)});
  };
  const std::vector<StageId>& route = placement.routes.front();
  for (const StageId stage : route) add(stage, Pass::kForward);
  for (auto stage = route.rbegin(); stage != route.rend(); ++stage) add(*stage, Pass::kBackward);
  return schedule;
}

/// The number of stage-micro-batches that fit in the memory of each device, in whole micro-batches;
/// nullopt if not even one fits.
std::optional<std::vector<int>> caps_of(const Plan& plan, const Placement& placement,
                                        const ModelGraph& model, const Cluster& cluster,
                                        const TrainerMemory& memory) {
  const LoweredStages lowered = lower_stages(plan, model, cluster, memory);
  const std::vector<Bytes> one = peak_of_passes(lowered, holding(placement, 1));
  const std::vector<Bytes> two = peak_of_passes(lowered, holding(placement, 2));
  const JobFacts facts = job_facts(plan.strategy, model, cluster);
  const std::int64_t microbatches = microbatch_count(plan.strategy);
  std::vector<int> caps;
  for (std::size_t d = 0; d < one.size(); ++d) {
    const Bytes capacity = capacity_at(facts, d);
    if (one[d] > capacity) return std::nullopt;
    std::int64_t held = microbatches;
    if (two[d] > one[d]) held = 1 + (capacity - one[d]).value / (two[d] - one[d]).value;
    caps.push_back(static_cast<int>(std::min(held, microbatches)) * plan.strategy.degrees.chunks);
  }
  return caps;
}

std::string why_synthesized(const RankedPlan& named, const Evaluation& evaluation) {
  const double saved = 1 - ratio(evaluation.step_time, named.evaluation.step_time);
  constexpr double kPercent = 100;
  return fmt::format("the synthesized order shortens the step of {} by {:.2f} % ({})",
                     named.plan.strategy.schedule, kPercent * saved, named.why);
}

}  // namespace

std::optional<RankedPlan> synthesize_orders(const RankedPlan& named, const ModelGraph& model,
                                            const Cluster& cluster, const CostModel& cost_model) {
  if (!can_be_synthesized(named.plan)) return std::nullopt;
  RankedPlan synthesized;
  synthesized.plan = named.plan;
  synthesized.plan.orders.clear();
  synthesized.plan.strategy.schedule = kSynthesizedSchedule;
  if (!check_plan(synthesized.plan, model, cluster).empty()) return std::nullopt;
  SynthesisRequest request;
  request.placement = schedule_of(synthesized.plan).placement;
  request.microbatches = static_cast<int>(microbatch_count(named.plan.strategy));
  request.times = stage_times_of(synthesized.plan, model, cluster, cost_model);
  const auto caps =
      caps_of(synthesized.plan, request.placement, model, cluster, cost_model.memory());
  if (!caps) return std::nullopt;
  request.caps = *caps;
  if (Schedule seed = schedule_of(named.plan); seed.placement == request.placement)
    request.seeds.push_back(std::move(seed));
  if (problem_of(request)) return std::nullopt;
  constexpr std::int64_t kUsualOperations =
      1'600;  // above them, effort would grow with the network
  const std::int64_t operations =
      3 * stage_count(named.plan.strategy.degrees) * request.microbatches;
  request.effort = request.effort * kUsualOperations / std::max(kUsualOperations, operations);
  synthesized.plan.orders = best_within_caps(request).schedule.orders;
  synthesized.evaluation = predict({synthesized.plan, model, cluster, cost_model}).evaluation;
  const bool is_better = synthesized.evaluation.step_time < named.evaluation.step_time ||
                         !fits_in_memory(named.evaluation);
  if (!is_better || !fits_in_memory(synthesized.evaluation)) return std::nullopt;
  synthesized.why = why_synthesized(named, synthesized.evaluation);
  return synthesized;
}

Plan best_ordered_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                       const CostModel& cost_model) {
  std::optional<RankedPlan> best;
  const auto is_better = [&](const Evaluation& a, const Evaluation& b) {
    if (fits_in_memory(a) != fits_in_memory(b)) return fits_in_memory(a);
    return fits_in_memory(a) ? a.step_time < b.step_time : peak_memory(a) < peak_memory(b);
  };
  for (const ScheduleRule& rule : schedule_rules()) {
    Strategy named = strategy;
    named.schedule = rule.name;
    if (!rule.worth_searching || rule.problem(request_of(named))) continue;
    RankedPlan row;
    row.plan = complete_plan(named, model, cluster, cost_model);
    row.evaluation = predict({row.plan, model, cluster, cost_model}).evaluation;
    if (!best || is_better(row.evaluation, best->evaluation)) best = std::move(row);
  }
  if (!best) {
    Strategy plain = strategy;
    plain.schedule = kDefaultSchedule;
    return complete_plan(plain, model, cluster, cost_model);  // throws with the reason
  }
  if (auto synthesized = synthesize_orders(*best, model, cluster, cost_model))
    return std::move(synthesized->plan);
  return std::move(best->plan);
}

void synthesize_best_rows(SearchResult& result, const ModelGraph& model, const Cluster& cluster,
                          const CostModel& cost_model, int threads) {
  const std::size_t rows = std::min(result.plans.size(), kRowsSynthesized);
  parallel_for(rows, threads, [&](std::size_t i) {
    if (auto synthesized = synthesize_orders(result.plans[i], model, cluster, cost_model))
      result.plans[i] = std::move(*synthesized);
  });
  std::stable_sort(result.plans.begin(), result.plans.end(),
                   [](const RankedPlan& a, const RankedPlan& b) {
                     return a.evaluation.step_time < b.evaluation.step_time;
                   });
  result.certificate.proved_optimal = false;
  result.certificate.gap = 1;  // no bound is known over all orders
}

}  // namespace meshwright
