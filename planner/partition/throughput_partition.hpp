/// Partitions an operator graph into contiguous stages so that the busiest device has the smallest
/// load, and proves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/partition_problem.hpp"

namespace meshwright {

/// What runs on one device. Nodes are indices of the problem, ascending.
struct PartitionStage {
  bool on_host = false;
  std::vector<std::int32_t> nodes;
  Ticks load;  ///< compute time, and on accelerators transfers across the boundary of the stage
  Bytes memory;
};

struct ThroughputPartition {
  std::vector<PartitionStage> stages;  ///< in the order of the data flow; without idle devices
  Ticks load;                          ///< of the busiest device: the time per sample
  Ticks lower_bound;                   ///< equal to load if proved optimal
  std::int64_t down_sets = 0;
  std::int64_t extensions = 0;  ///< stages that were priced
};

/// Work after which the search stops. Then, and if a graph has more items or down-sets, stages that
/// are consecutive in one topological order are searched, and the lower bound may be lower.
struct PartitionLimits {
  std::size_t items = 4096;
  std::size_t down_sets = 250'000;
  std::int64_t extensions = 1'000'000'000;  ///< about 50 ns each
};

/// Empty if no partition fits in the memory of the accelerators. The problem must pass
/// check_partition_problem(). Deterministic.
///
/// The first stages of a pipeline form a down-set of the forward graph. A pass with threshold T
/// finds for every down-set the fewest accelerators whose loads are all below T; it extends stages
/// item by item and leaves out
///  - stages whose compute time, and transfers that no further item can make local, reach T;
///  - down-sets whose remaining work needs more accelerators than are left;
///  - down-sets that can be reached with one item more at the same number of devices, where the
///    item costs the stages after it no less than it saves them (dominance).
/// A pass that finds a partition lowers the upper bound, one that finds none raises the lower
/// bound.
std::optional<ThroughputPartition> partition_for_throughput(const PartitionProblem& problem,
                                                            const PartitionLimits& limits = {});

/// Loads and memory of given stages, from their definition. The reference for what is above.
void price_stages(const PartitionProblem& problem, std::vector<PartitionStage>& stages);

}  // namespace meshwright
