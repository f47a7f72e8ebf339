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
  int tensor = 1;                            ///< devices of a group
  std::vector<std::string> placements = {};  ///< by node, see placements_of(); empty: tensor is 1
  int zero = 0;                              ///< see LoweredPartition
  Prediction prediction;
};

/// The different plans that fit, fastest step first; of equally fast ones the one with fewer
/// stages. For every number of pipelines that divides devices and micro-batches there is one: the
/// partition with the fastest slowest stage on the devices of one pipeline, whose stages have that
/// many times as many replicas, and shard their state as in ZeRO or not. One pipeline per device is
/// data parallelism. The same with groups of 2, 4, … tensor-parallel devices of a node instead of
/// devices, as far as the graph says how its kernels can be sharded. Ends early if `stop` returns
/// true. Partitions with more than kMostSimulatedPasses forward and backward passes are
/// left out.
std::vector<GraphPlan> plan_graph(const KernelGraph& graph, const Cluster& cluster,
                                  const CostModel& cost, const GraphDevices& devices,
                                  const std::string& where, const std::function<bool()>& stop = {});

/// A pass is about three tasks.
inline constexpr std::int64_t kMostSimulatedPasses = std::int64_t{1} << 22;
std::int64_t simulated_passes(const TrainingPartition& training);

}  // namespace meshwright
