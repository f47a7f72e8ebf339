#include "planner/partition/graph_plan.hpp"

#include <algorithm>
#include <tuple>

namespace meshwright {
namespace {

/// The partition of one pipeline, `pipelines` times.
TrainingPartition copies_of(TrainingPartition one, int pipelines) {
  one.problem.devices *= pipelines;
  one.problem.microbatches *= pipelines;
  one.partition.devices *= pipelines;
  for (ReplicatedStage& stage : one.partition.stages) stage.data *= pipelines;
  return one;
}

bool are_equal(const TrainingPartition& a, const TrainingPartition& b) {
  return std::ranges::equal(a.partition.stages, b.partition.stages,
                            [](const ReplicatedStage& x, const ReplicatedStage& y) {
                              return x.data == y.data && x.nodes == y.nodes &&
                                     x.variant == y.variant;
                            });
}

/// Of ZeRO.
std::vector<int> levels_of(const TrainingPartition& training) {
  const bool has_replicas = std::ranges::any_of(training.partition.stages,
                                                [](const auto& stage) { return stage.data > 1; });
  if (!has_replicas) return {0};
  return can_shard_weights(training) ? std::vector{0, 1, 3} : std::vector{0, 1};
}

}  // namespace

std::int64_t simulated_passes(const TrainingPartition& training) {
  return 2 * static_cast<std::int64_t>(training.partition.stages.size()) *
         training.problem.microbatches;
}

std::vector<GraphPlan> plan_graph(const KernelGraph& graph, const Cluster& cluster,
                                  const CostModel& cost, const GraphDevices& devices,
                                  const std::string& where, const std::function<bool()>& stop) {
  std::vector<GraphPlan> plans;
  for (int pipelines = 1; pipelines <= devices.count; ++pipelines) {
    if (devices.count % pipelines != 0 || devices.microbatches % pipelines != 0) continue;
    if (stop && stop()) break;
    GraphDevices of_pipeline = devices;
    of_pipeline.count /= pipelines;
    of_pipeline.microbatches /= pipelines;
    auto priced = price_training(graph, cost, of_pipeline, where);
    auto partition = partition_with_replication(priced.problem, kMostTrainingDownSets);
    if (!partition && pipelines > 1) {
      of_pipeline.shards = pipelines;
      priced = price_training(graph, cost, of_pipeline, where);
      partition = partition_with_replication(priced.problem, kMostTrainingDownSets);
    }
    if (!partition) continue;
    const TrainingPartition training = copies_of(expand(graph, priced, *partition), pipelines);
    if (simulated_passes(training) > kMostSimulatedPasses) continue;
    if (std::ranges::any_of(
            plans, [&](const GraphPlan& other) { return are_equal(other.training, training); }))
      continue;
    for (const int zero : levels_of(training)) {
      GraphPlan plan{
          .is_exact = priced.is_exact, .training = training, .zero = zero, .prediction = {}};
      plan.prediction =
          predict_partition({graph, priced, training, cluster, devices.reserved, zero}, cost);
      if (fits_in_memory(plan.prediction.evaluation)) plans.push_back(std::move(plan));
    }
  }
  std::ranges::stable_sort(plans, {}, [](const GraphPlan& plan) {
    return std::tuple(plan.prediction.evaluation.step_time, plan.training.partition.stages.size(),
                      plan.zero);
  });
  return plans;
}

}  // namespace meshwright
