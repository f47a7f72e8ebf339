/// Moves that choose the strategies of many nodes at once: the best ones of all nodes of a forest
/// of the graph, while the others stay. Forests are induced: two of their nodes that are neighbors
/// are connected in it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/sharding/chance.hpp"
#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {

class ForestMoves {
 public:
  ForestMoves(const StrategyGraph& graph, std::uint64_t seed);

  /// A maximal forest among all nodes, or among up to `most` nodes near one at random.
  void choose_forest(std::size_t most);
  /// Changes `chosen` to the best strategies of the forest, with `prices` added to the costs.
  /// Returns by how much the sum of costs and prices falls; 0: nothing has changed.
  double improve(std::span<const double> prices, Strategies& chosen);
  /// Nodes of the forest.
  std::span<const std::int32_t> nodes() const { return order_; }

 private:
  void collect_candidates(std::size_t most);
  /// Joins the node if all its neighbors in the forest belong to different trees.
  void try_to_join(std::int32_t node);
  std::int32_t root_of(std::int32_t node);
  void orient();

  const StrategyGraph& graph_;
  Chance random_;
  std::vector<std::int32_t> candidates_, order_;  ///< order_: parents before children
  std::vector<std::int32_t> tree_;                ///< union-find; -1: not in the forest
  std::vector<std::int32_t> parent_;  ///< index into the neighbors of the node; -1: root
  std::vector<std::uint32_t> mark_;
  std::uint32_t round_ = 0;
  std::vector<double> sums_;  ///< by strategy of all nodes: least cost of the subtree
};

}  // namespace meshwright
