/// Plans of a graph of kernels: its pipelines of replicated stages, judged by their simulated step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/partition/lower_partition.hpp"

namespace meshwright {

struct GraphPlan {
  bool is_exact = true;                      ///< see PricedKernelGraph
  TrainingPartition training;                ///< of one device of each tensor-parallel group
  std::vector<std::int32_t> group = {};      ///< by node, see PricedKernelGraph
  int tensor = 1;                            ///< devices of a group
  std::vector<std::string> placements = {};  ///< by node, see placements_of(); empty: tensor is 1
  bool has_best_placements = false;          ///< see ShardedGraph::is_optimal
  int zero = 0;                              ///< see LoweredPartition
  Prediction prediction;
};

/// The shortest steps of several searches.
class ShortestSteps {
 public:
  explicit ShortestSteps(std::size_t wanted) : wanted_(wanted) {}
  void add(Ticks step);
  /// False if all that are wanted are shorter than `bound`.
  bool may_include(Seconds bound);
  int left_out() const { return left_out_; }  ///< how often the answer was false

 private:
  std::size_t wanted_;
  int left_out_ = 0;
  std::vector<Ticks> steps_;  ///< a heap, the longest one first
};

struct GraphPlanOptions {
  std::function<bool()> stop = {};    ///< ends the search early if it returns true
  ShortestSteps* shortest = nullptr;  ///< plans that cannot be among them are left out
};

/// The different plans that fit, fastest step first; of equally fast ones the one with fewer
/// stages. For every number of pipelines that divides devices and micro-batches there is one: the
/// partition with the fastest slowest stage on the devices of one pipeline, whose stages have that
/// many times as many replicas, and shard their state as in ZeRO or not. One pipeline per device is
/// data parallelism. The same with groups of 2, 4, … tensor-parallel devices of a node instead of
/// devices, as far as the graph says how its kernels can be sharded. Partitions with more than
/// kMostSimulatedPasses forward and backward passes are left out.
std::vector<GraphPlan> plan_graph(const KernelGraph& graph, const Cluster& cluster,
                                  const CostModel& cost, const GraphDevices& devices,
                                  const std::string& where, const GraphPlanOptions& options = {});

/// A graph whose micro-batch size is chosen, too.
struct SizedGraph {
  std::function<KernelGraph(std::int64_t micro_batch)> read;
  std::vector<std::int64_t> micro_batches;  ///< ascending, divisors of the global batch
  std::int64_t global_batch = 1;            ///< samples per step
};
/// Powers of two up to 1,024 that divide the global batch into not too many micro-batches.
std::vector<std::int64_t> searched_micro_batches(std::int64_t global_batch);

struct SizedGraphPlan {
  std::int64_t micro_batch = 1;
  GraphPlan plan;
};
struct SizedGraphPlans {
  std::vector<SizedGraphPlan> plans;  ///< the fastest step first
  KernelGraph graph;                  ///< of the last micro-batch size
  int sizes = 0;                      ///< micro-batch sizes that were tried
  bool is_complete = true;            ///< false: slower plans were left out
};
/// At least the `wanted` fastest plans of all sizes. Larger micro-batches are not tried if nothing
/// fits. GraphDevices::microbatches is ignored.
SizedGraphPlans plan_graph(const SizedGraph& graph, const Cluster& cluster, const CostModel& cost,
                           const GraphDevices& devices, const std::string& where,
                           std::size_t wanted, const std::function<bool()>& stop = {});

/// A pass is about three tasks.
inline constexpr std::int64_t kMostSimulatedPasses = std::int64_t{1} << 22;
std::int64_t simulated_passes(const TrainingPartition& training);

}  // namespace meshwright
