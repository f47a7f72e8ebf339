/// Makes a graph of operators small enough to be partitioned.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/model/partition_problem.hpp"

namespace meshwright {

/// Groups of nodes that stay on one device: at most `most` of them, numbered in a topological order
/// of the groups. By node. Nodes must be in topological order. Every node is a group of its own if
/// there are few enough.
///
/// The two adjacent groups with the smallest sum of times are merged, again and again. Only groups
/// between which all paths lead directly are merged (one has no other reader, or the other no other
/// source), so that no cycle arises. If that is not enough, consecutive groups are merged into
/// parts of about equal time.
std::vector<std::int32_t> merge_nodes(const std::vector<Seconds>& times,
                                      const std::vector<PartitionEdge>& edges, std::size_t most);

}  // namespace meshwright
