/// What can be placed on its own: nodes that share a device are one item.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/partition_problem.hpp"

namespace meshwright {

/// The output of a node that other items read. A device pays `time` if it has the home or a reader,
/// but not all of them.
struct PartitionSignal {
  std::int32_t home = 0;
  std::vector<std::int32_t> readers;  ///< items other than home, ascending
  std::int64_t time = 0;              ///< picoseconds
};

struct PartitionItem {
  std::int64_t accelerator_time = 0;  ///< picoseconds
  std::int64_t host_time = 0;         ///< picoseconds
  std::int64_t memory = 0;            ///< bytes
  bool runs_on_accelerator = true;
};

/// Items in topological order of the forward graph. A backward node belongs to the item of the
/// forward nodes with its colocation; backward nodes without forward nodes are placed as if the
/// forward graph had their mirror image.
struct PartitionItems {
  std::vector<PartitionItem> items;
  std::vector<std::vector<std::int32_t>> before, after;  ///< adjacent items of the forward graph
  std::vector<PartitionSignal> signals;                  ///< with time > 0 and a reader
  std::vector<std::int32_t> item_of_node;
};

/// Merges colocated nodes, what lies on a cycle with them, and nodes without time that only one
/// other node is adjacent to; of the last those with memory only if one accelerator holds all
/// nodes. The problem must pass check_partition_problem().
PartitionItems make_partition_items(const PartitionProblem& problem);

/// The items in their order, joined to at most 1,024 blocks of consecutive items with about the
/// same time, one after the other.
PartitionItems chain_of_blocks(const PartitionItems& items);

}  // namespace meshwright
