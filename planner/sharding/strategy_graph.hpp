/// The costs of a reduced sharding problem prepared for search: equal matrices stored once,
/// neighbors of every node listed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/indices.hpp"
#include "planner/sharding/reduced_sharding.hpp"

namespace meshwright {

class StrategyGraph {
 public:
  explicit StrategyGraph(const ReducedSharding& problem);

  struct Neighbor {
    std::int32_t node = 0;
    std::int32_t edge = 0;
    bool is_first = false;  ///< the node that has this neighbor is the first one of the edge
  };
  struct Edge {
    std::int32_t first = 0, second = 0;
    std::int32_t matrix = 0;
  };

  std::size_t node_count() const { return unary_begin_.size() - 1; }
  std::size_t edge_count() const { return edges_.size(); }
  std::size_t strategies(std::size_t node) const {
    return unary_begin_[node + 1] - unary_begin_[node];
  }
  std::size_t most_strategies() const { return most_strategies_; }
  /// Place of the first strategy of a node in an array of all strategies.
  std::size_t offset(std::size_t node) const { return unary_begin_[node]; }
  std::size_t total_strategies() const { return unary_begin_.back(); }
  std::span<const double> costs(std::size_t node) const {
    return {unary_.data() + unary_begin_[node], strategies(node)};
  }
  std::span<const Neighbor> neighbors(std::size_t node) const {
    return {neighbors_.data() + neighbor_begin_[node],
            neighbor_begin_[node + 1] - neighbor_begin_[node]};
  }
  const Edge& edge(std::size_t e) const { return edges_[e]; }
  /// costs[a][b] of an edge, from the side of either of its nodes: row of strategy `own` of a node
  /// over the strategies of the neighbor.
  std::span<const double> row(const Neighbor& to, std::size_t own) const {
    const Matrix& matrix = matrices_[static_cast<std::size_t>(edges_[to_index(to.edge)].matrix)];
    const std::size_t width = to.is_first ? matrix.columns : matrix.rows;
    const std::vector<double>& values = to.is_first ? matrix.values : matrix.transposed;
    return {values.data() + own * width, width};
  }
  double cost(const Strategies& chosen) const;

 private:
  struct Matrix {
    std::size_t rows = 0, columns = 0;
    std::vector<double> values, transposed;
  };
  void add_edges(const ReducedSharding& problem);
  void list_neighbors();

  std::vector<double> unary_;
  std::vector<std::size_t> unary_begin_, neighbor_begin_;
  std::vector<Edge> edges_;
  std::vector<Matrix> matrices_;
  std::vector<Neighbor> neighbors_;
  std::size_t most_strategies_ = 1;
};

/// The price of the memory of every strategy of all nodes, one after the other, in `prices`; the
/// price of a byte at every time is its multiplier times `factor`.
void set_prices(const StrategyGraph& graph, const MemoryProfile& memory, double factor,
                std::span<double> prices);

}  // namespace meshwright
