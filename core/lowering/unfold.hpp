/// From representatives to all ranks of a job.
#pragma once

#include <cstdint>

#include "core/lowering/folded_graph.hpp"

namespace meshwright {

/// Expands the graph to all ranks; leaves TaskGraph::ranks empty. O(tasks).
TaskGraph unfold(const FoldedGraph& folded, std::int64_t replicas);

}  // namespace meshwright
