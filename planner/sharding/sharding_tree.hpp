/// Branch and bound over the strategies of a reduced sharding problem, with prices of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "planner/sharding/reduced_sharding.hpp"

namespace meshwright {

struct TreeOptions {
  double cutoff = 0;            ///< choices of this cost or more do not count
  std::int64_t most_nodes = 0;  ///< of the tree
  std::function<bool()> stop;   ///< polled at every node of the tree
};

struct TreeResult {
  std::optional<Strategies> best;  ///< cheaper than the cutoff
  double cost = 0;                 ///< of `best`
  bool is_complete = false;        ///< nothing else is cheaper than the cutoff and `best`
  std::int64_t nodes = 0;          ///< visited
};

/// Costs are whole numbers; the multipliers of the problem are the first prices of memory. At every
/// node: prices are raised and lowered for a few passes of messages; strategies are removed that
/// exceed memory, or whose reduced cost exceeds the cutoff; what is left is reduced
/// (reduced_sharding.hpp); then one strategy is fixed, or removed.
TreeResult search_tree(const ReducedSharding& problem, const TreeOptions& options);

}  // namespace meshwright
