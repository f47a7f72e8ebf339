#include "simulator/predict/predict.hpp"

#include <algorithm>

#include "core/plan/job_groups.hpp"
#include "core/plan/weight_versions.hpp"

namespace meshwright {
namespace {

/// For schedules without flush: one steady-state step inside the window of steps that lower()
/// generates.
std::optional<StepInWindow> step_of(const Strategy& strategy) {
  if (!updates_without_flush(strategy)) return std::nullopt;
  const auto microbatches = static_cast<int>(microbatch_count(strategy));
  return StepInWindow{.first_microbatch = steady_window(strategy).steady * microbatches,
                      .microbatches = microbatches};
}

}  // namespace

namespace {

/// Mean over the devices of the job.
FlopsPerSecond mean_peak(const Cluster& cluster, Dtype dtype, std::int64_t ranks) {
  FlopsPerSecond sum;
  std::int64_t left = ranks;
  for (const NodeGroup& group : cluster.groups) {
    const NodeModel& node = cluster.nodes.at(group.node);
    const std::int64_t used = std::min(left, std::int64_t{group.count} * node.device_count);
    const auto& peak = cluster.devices.at(node.device).peak[static_cast<std::size_t>(dtype)];
    sum += peak.value_or(FlopsPerSecond()) * static_cast<double>(used);
    left -= used;
  }
  return sum / static_cast<double>(ranks);
}

}  // namespace

JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster) {
  const std::int64_t ranks = rank_count(strategy.degrees);
  const DeviceModel& first = device_of(cluster, DeviceId(0));
  JobFacts facts{.model_flops_per_step = model_flops_per_step(model, strategy),
                 .tokens_per_step = strategy.global_batch * strategy.sequence_length,
                 .job_ranks = ranks,
                 .device_peak = first.peak[static_cast<std::size_t>(strategy.dtype)].value_or(
                     FlopsPerSecond()),
                 .memory_capacity = first.memory,
                 .step = step_of(strategy)};
  if (is_homogeneous(cluster)) return facts;
  facts.device_peak = mean_peak(cluster, strategy.dtype, ranks);
  facts.capacity_of_position = job_groups_of(strategy, cluster).memory_of_position;
  return facts;
}

LinkNetwork network_of(std::span<const RankInfo> ranks, const Strategy& strategy,
                       const Cluster& cluster) {
  return {cluster, static_cast<int>(ranks.size()),
          used_devices_per_node(cluster, rank_count(strategy.degrees))};
}

SimulatedStep simulate_step(const TrainingJob& job) {
  MW_CHECK(!job.contention || job.ranks == RankSet::kAll);
  const auto pause = [&job] {
    if (job.checkpoint) job.checkpoint();
  };
  SimulatedStep step;
  step.graph = lower(job.plan, job.model, job.cluster,
                     {.ranks = job.ranks, .steps = job.steps, .memory = job.cost_model.memory()});
  pause();
  step.prices = price_works(step.graph.parts, step.graph.works, job.cost_model);
  apply(job.what_if, step.graph, step.prices);
  if (job.contention)
    step.times = simulate_with_contention(
        step.graph, step.prices, network_of(step.graph.ranks, job.plan.strategy, job.cluster));
  else
    simulate(step.graph, step.prices, step.times);
  pause();
  return step;
}

EvaluatedStep evaluate_step(const TrainingJob& job, const SimulatedStep& step) {
  const Strategy& strategy = job.plan.strategy;
  EvaluatedStep evaluated;
  evaluated.evaluation =
      evaluate(step.graph, step.prices, step.times, job_facts(strategy, job.model, job.cluster));
  if (job.trainer != nullptr && !job.validated_runs.empty())
    evaluated.error_bar =
        error_bar(traits_of(strategy, job.model, job.cluster, *job.trainer, evaluated.evaluation),
                  job.validated_runs);
  return evaluated;
}

PricedReplicas price_replicas(const TrainingJob& job) {
  PricedReplicas priced;
  priced.all = lower_replicated(job.plan, job.model, job.cluster,
                                {.steps = job.steps, .memory = job.cost_model.memory()});
  TaskGraph& folded = priced.all.folded.graph;
  priced.prices = price_works(folded.parts, folded.works, job.cost_model);
  apply(job.what_if, folded, priced.prices);
  if (job.contention) priced.network = network_of(priced.all.ranks, job.plan.strategy, job.cluster);
  if (job.checkpoint) job.checkpoint();
  return priced;
}

Prediction predict(const TrainingJob& job, const PricedReplicas& priced,
                   const SimulatedReplicas& simulated) {
  SimulatedStep step{simulated.graph.graph, priced.prices, simulated.times};
  EvaluatedStep evaluated = evaluate_step(job, step);
  return {std::move(step), std::move(evaluated)};
}

SimulatedStep step_of_all_ranks(const PricedReplicas& priced, const SimulatedReplicas& simulated) {
  return {graph_of_all_ranks(priced.all), priced.prices, times_of_all_ranks(priced.all, simulated)};
}

Prediction predict(const TrainingJob& job) {
  SimulatedStep step = simulate_step(job);
  EvaluatedStep evaluated = evaluate_step(job, step);
  return {std::move(step), std::move(evaluated)};
}

}  // namespace meshwright
