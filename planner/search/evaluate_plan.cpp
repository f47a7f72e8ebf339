#include "planner/search/evaluate_plan.hpp"
#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/weight_versions.hpp"
#include "core/timeline/evaluation.hpp"
#include "planner/search/search.hpp"

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

JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster) {
  const std::int64_t ranks = rank_count(strategy.degrees);
  const auto last = DeviceId(static_cast<std::int32_t>(ranks - 1));
  const DeviceModel& first_device = device_of(cluster, DeviceId(0));
  const NodeId last_node = node_index_of(cluster, last);

  Bytes least = first_device.memory;
  FlopsPerSecond slowest =
      first_device.peak[static_cast<std::size_t>(strategy.dtype)].value_or(FlopsPerSecond());
  std::int32_t node = 0;
  for (const NodeGroup& group : cluster.groups) {
    if (node > last_node.value) break;
    const DeviceModel& device = cluster.devices.at(cluster.nodes.at(group.node).device);
    least = std::min(least, device.memory);
    slowest = std::min(
        slowest, device.peak[static_cast<std::size_t>(strategy.dtype)].value_or(FlopsPerSecond()));
    node += group.count;
  }
  return {.model_flops_per_step = model_flops_per_step(model, strategy),
          .tokens_per_step = strategy.global_batch * strategy.sequence_length,
          .job_ranks = ranks,
          .device_peak = slowest,
          .memory_capacity = least,
          .step = step_of(strategy)};
}

Evaluation evaluate_plan(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                         const CostModel& cost_model) {
  const TaskGraph graph = lower(plan, model, cluster, {.memory = cost_model.memory()});
  const std::vector<WorkPrice> prices = price_works(graph.parts, graph.works, cost_model);
  const SimulatedTimes times = simulate(graph, prices);
  return evaluate(graph, prices, times, job_facts(plan.strategy, model, cluster));
}

}  // namespace meshwright
