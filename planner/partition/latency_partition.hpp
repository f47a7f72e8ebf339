/// Partitions an operator graph so that one sample passes through it in the shortest time, and
/// proves it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/throughput_partition.hpp"

namespace meshwright {

struct LatencyPartition {
  /// One stage per accelerator, in the order of the data flow; then all nodes on hosts, if any.
  std::vector<PartitionStage> stages;
  Ticks latency;
  Ticks lower_bound;  ///< equal to latency if proved optimal
  std::int64_t down_sets = 0;
  std::int64_t extensions = 0;  ///< stages that were priced
};

/// Empty if no partition fits in the memory of the accelerators. The problem must pass
/// check_partition_problem(), and have no backward nodes. Deterministic.
///
/// An accelerator computes its stage in one call (Tarnawski et al., NeurIPS 2020, section 4): it
/// starts when all that the stage reads is in host memory, and its load is as for throughput:
/// transfers in, compute time, transfers out. Hosts have a core for every node that has its inputs,
/// if there are any; colocated nodes start together. Stages are contiguous.
///
/// Method: every partition computes its stages and host nodes in some order, whose beginnings are
/// down-sets. For every down-set, the search has the times at which what later nodes read can be
/// ready, without those that are never earlier with the same accelerators. Stages grow item by item
/// as long as the longest path through them can be shorter than the best known latency, which is at
/// first that of partitions of one topological order. With more work than the limits, or more
/// down-sets, that is the result, and the lower bound is the longest path.
std::optional<LatencyPartition> partition_for_latency(const PartitionProblem& problem,
                                                      const PartitionLimits& limits = {});

/// Loads, memory and latency of given stages, from their definition. The reference for what is
/// above.
Ticks price_latency(const PartitionProblem& problem, std::vector<PartitionStage>& stages);

}  // namespace meshwright
