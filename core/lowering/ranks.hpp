/// The ranks of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/task_graph.hpp"

namespace meshwright {

struct LoweringContext;

/// The first `replicas` ranks of every pipeline rank, each representing an equal share of all.
std::vector<RankInfo> ranks_of(const LoweringContext& context, std::int64_t replicas);

}  // namespace meshwright
