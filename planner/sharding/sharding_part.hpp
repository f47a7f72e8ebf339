/// A part of a sharding problem: some nodes choose again while the others keep their strategies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/sharding/chance.hpp"
#include "planner/sharding/reduced_sharding.hpp"
#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {

/// Up to `size` nodes that are near each other in the graph, or in use at one time at random.
std::vector<std::int32_t> choose_part(const StrategyGraph& graph, const MemoryProfile& memory,
                                      std::size_t size, Chance& random);

/// The problem of `nodes`. Its costs include those of the edges to the other nodes, but not what
/// these cost themselves.
ReducedSharding part_of(const StrategyGraph& graph, const MemoryProfile& memory,
                        const Strategies& chosen, std::span<const std::int32_t> nodes);

}  // namespace meshwright
