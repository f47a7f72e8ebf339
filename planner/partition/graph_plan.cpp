#include "planner/partition/graph_plan.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "planner/partition/shard_graph.hpp"

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

void ShortestSteps::add(Ticks step) {
  steps_.push_back(step);
  std::ranges::push_heap(steps_);
  if (steps_.size() <= wanted_) return;
  std::ranges::pop_heap(steps_);
  steps_.pop_back();
}

bool ShortestSteps::may_include(Seconds bound) {
  const bool may = steps_.size() < wanted_ || bound <= to_seconds(steps_.front());
  left_out_ += may ? 0 : 1;
  return may;
}

std::int64_t simulated_passes(const TrainingPartition& training) {
  return 2 * static_cast<std::int64_t>(training.partition.stages.size()) *
         training.problem.microbatches;
}

namespace {

/// Plans with groups of `tensor` tensor-parallel devices.
class GraphPlanner {
 public:
  GraphPlanner(const KernelGraph& graph, const Cluster& cluster, const CostModel& cost,
               const std::string& where, const GraphPlanOptions& options)
      : whole_(graph), cluster_(cluster), cost_(cost), where_(where), options_(options) {}

  void add_plans(const GraphDevices& devices) { add_plans(whole_, {}, devices); }

  /// Every device has as little of the weights as possible only if nothing else fits.
  void add_tensor_parallel_plans(GraphDevices devices, int tensor) {
    const int groups_per_node = std::max(1, node_of(cluster_, DeviceId(0)).device_count / tensor);
    ShardingRequest request{.group = {.devices = tensor, .groups_per_node = groups_per_node},
                            .microbatches = devices.microbatches};
    devices.count /= tensor;
    devices.flows_per_node = tensor;
    for (const bool shards_parameters : {false, true}) {
      request.shards_parameters = shards_parameters;
      ShardedGraph sharded = shard_graph(whole_, cost_, request);
      const bool is_sharded = std::ranges::any_of(
          sharded.sharding, [](std::int32_t each) { return each != kReplicated; });
      const std::size_t before = plans_.size();
      if (is_sharded)
        add_plans(sharded.graph,
                  {.training = {},
                   .tensor = tensor,
                   .placements = placements_of(whole_, sharded.sharding),
                   .has_best_placements = sharded.is_optimal,
                   .prediction = {}},
                  devices);
      if (plans_.size() > before || is_stopped()) return;
    }
  }

  std::vector<GraphPlan> take() {
    std::ranges::stable_sort(plans_, {}, [](const GraphPlan& plan) {
      return std::tuple(plan.prediction.evaluation.step_time, plan.training.partition.stages.size(),
                        plan.tensor, plan.zero);
    });
    return std::move(plans_);
  }

 private:
  /// Of a graph that is sharded as `plan` says.
  void add_plans(const KernelGraph& graph, GraphPlan plan, const GraphDevices& devices) {
    for (int pipelines = 1; pipelines <= devices.count; ++pipelines) {
      if (devices.count % pipelines != 0 || devices.microbatches % pipelines != 0) continue;
      if (is_stopped()) return;
      GraphDevices of_pipeline = devices;
      of_pipeline.count /= pipelines;
      of_pipeline.microbatches /= pipelines;
      auto priced = price_training(graph, cost_, of_pipeline, where_);
      if (options_.shortest != nullptr &&
          !options_.shortest->may_include(of_pipeline.microbatches * work_bound(priced.problem)))
        return;  // the work of a device is the same for all numbers of pipelines
      auto partition = partition_with_replication(priced.problem, kMostTrainingDownSets);
      if (!partition && pipelines > 1) {
        of_pipeline.shards = pipelines;
        priced = price_training(graph, cost_, of_pipeline, where_);
        partition = partition_with_replication(priced.problem, kMostTrainingDownSets);
      }
      if (!partition) continue;
      plan.is_exact = priced.is_exact;
      plan.group = priced.group;
      plan.training = copies_of(expand(graph, priced, *partition), pipelines);
      if (simulated_passes(plan.training) > kMostSimulatedPasses || is_known(plan)) continue;
      for (const int zero : levels_of(plan.training)) {
        plan.zero = zero;
        plan.prediction = predict_partition({.graph = graph,
                                             .priced = priced,
                                             .training = plan.training,
                                             .cluster = cluster_,
                                             .reserved = devices.reserved,
                                             .zero = zero,
                                             .tensor = plan.tensor,
                                             .whole = &whole_},
                                            cost_);
        if (!fits_in_memory(plan.prediction.evaluation)) continue;
        if (options_.shortest != nullptr)
          options_.shortest->add(plan.prediction.evaluation.step_time);
        plans_.push_back(plan);
      }
    }
  }

  bool is_stopped() const { return options_.stop && options_.stop(); }
  bool is_known(const GraphPlan& plan) const {
    return std::ranges::any_of(plans_, [&](const GraphPlan& other) {
      return other.tensor == plan.tensor && are_equal(other.training, plan.training);
    });
  }

  const KernelGraph& whole_;
  const Cluster& cluster_;
  const CostModel& cost_;
  const std::string& where_;
  const GraphPlanOptions& options_;
  std::vector<GraphPlan> plans_;
};

/// Groups are within a node.
std::vector<int> tensor_degrees(const KernelGraph& graph, const Cluster& cluster,
                                const GraphDevices& devices) {
  const int of_node = node_of(cluster, DeviceId(0)).device_count;
  std::vector<int> degrees;
  for (int tensor = 2; tensor <= std::min(of_node, devices.count); ++tensor) {
    const bool is_asked =
        devices.tensor ? *devices.tensor == tensor : std::has_single_bit(unsigned(tensor));
    if (is_asked && !graph.units.empty() && devices.count % tensor == 0 && of_node % tensor == 0)
      degrees.push_back(tensor);
  }
  return degrees;
}

}  // namespace

std::vector<GraphPlan> plan_graph(const KernelGraph& graph, const Cluster& cluster,
                                  const CostModel& cost, const GraphDevices& devices,
                                  const std::string& where, const GraphPlanOptions& options) {
  GraphPlanner planner(graph, cluster, cost, where, options);
  if (devices.tensor.value_or(1) == 1) planner.add_plans(devices);
  for (const int tensor : tensor_degrees(graph, cluster, devices))
    planner.add_tensor_parallel_plans(devices, tensor);
  return planner.take();
}

std::vector<std::int64_t> searched_micro_batches(std::int64_t global_batch) {
  constexpr std::int64_t kLargest = 1024;
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 1; size <= kLargest; size *= 2)
    if (global_batch % size == 0 && global_batch / size <= kMostMicrobatches) sizes.push_back(size);
  return sizes;
}

SizedGraphPlans plan_graph(const SizedGraph& graph, const Cluster& cluster, const CostModel& cost,
                           const GraphDevices& devices, const std::string& where,
                           std::size_t wanted, const std::function<bool()>& stop) {
  SizedGraphPlans found;
  ShortestSteps shortest(wanted);
  for (const std::int64_t size : graph.micro_batches) {
    if (stop && stop()) break;
    found.graph = graph.read(size);
    ++found.sizes;
    GraphDevices of_size = devices;
    of_size.microbatches = static_cast<int>(graph.global_batch / size);
    const int left_out = shortest.left_out();
    std::vector<GraphPlan> plans = plan_graph(found.graph, cluster, cost, of_size, where,
                                              {.stop = stop, .shortest = &shortest});
    if (plans.empty() && shortest.left_out() == left_out) break;
    for (GraphPlan& plan : plans) found.plans.push_back({size, std::move(plan)});
  }
  found.is_complete = shortest.left_out() == 0;
  std::ranges::stable_sort(found.plans, {}, [](const SizedGraphPlan& each) {
    return each.plan.prediction.evaluation.step_time;
  });
  return found;
}

}  // namespace meshwright
