#include "planner/sharding/strategy_graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace meshwright {

StrategyGraph::StrategyGraph(const ReducedSharding& problem) {
  unary_begin_.push_back(0);
  for (const std::vector<double>& costs : problem.costs) {
    unary_.insert(unary_.end(), costs.begin(), costs.end());
    unary_begin_.push_back(unary_.size());
    most_strategies_ = std::max(most_strategies_, costs.size());
  }
  add_edges(problem);
  list_neighbors();
}

void StrategyGraph::add_edges(const ReducedSharding& problem) {
  std::map<std::pair<std::size_t, std::vector<double>>, std::int32_t> known;
  for (const ReducedSharding::Edge& edge : problem.edges) {
    const std::size_t rows = strategies(to_index(edge.first)),
                      columns = strategies(to_index(edge.second));
    const auto [place, is_new] =
        known.try_emplace({rows, edge.costs}, static_cast<std::int32_t>(matrices_.size()));
    edges_.push_back({edge.first, edge.second, place->second});
    if (!is_new) continue;
    Matrix matrix{rows, columns, edge.costs, std::vector<double>(rows * columns)};
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t b = 0; b < columns; ++b)
        matrix.transposed[b * rows + a] = matrix.values[a * columns + b];
    matrices_.push_back(std::move(matrix));
  }
}

void StrategyGraph::list_neighbors() {
  neighbor_begin_.assign(node_count() + 1, 0);
  for (const Edge& edge : edges_) {
    ++neighbor_begin_[to_index(edge.first) + 1];
    ++neighbor_begin_[to_index(edge.second) + 1];
  }
  for (std::size_t v = 0; v < node_count(); ++v) neighbor_begin_[v + 1] += neighbor_begin_[v];
  neighbors_.resize(neighbor_begin_.back());
  std::vector<std::size_t> next(neighbor_begin_.begin(), neighbor_begin_.end() - 1);
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const Edge& edge = edges_[e];
    neighbors_[next[to_index(edge.first)]++] = {edge.second, static_cast<std::int32_t>(e), true};
    neighbors_[next[to_index(edge.second)]++] = {edge.first, static_cast<std::int32_t>(e), false};
  }
}

double StrategyGraph::cost(const Strategies& chosen) const {
  double sum = 0;
  for (std::size_t v = 0; v < node_count(); ++v) {
    sum += costs(v)[to_index(chosen[v])];
    for (const Neighbor& to : neighbors(v))
      if (to.is_first) sum += row(to, to_index(chosen[v]))[to_index(chosen[to_index(to.node)])];
  }
  return sum;
}

void set_prices(const StrategyGraph& graph, const MemoryProfile& memory, double factor,
                std::span<double> prices) {
  // A change is in use at all times from its own on.
  std::vector<double> later = memory.multipliers;
  std::partial_sum(later.rbegin(), later.rend(), later.rbegin());
  std::ranges::fill(prices, 0);
  for (std::size_t v = 0; v < graph.node_count(); ++v) {
    const MemoryChanges& changes = memory.nodes[v];
    for (std::size_t i = 0; i < changes.times.size(); ++i) {
      const double price = factor * later[static_cast<std::size_t>(changes.times[i])];
      if (price == 0) continue;
      const std::span<const double> differences = changes.at(i);
      double* sums = prices.data() + graph.offset(v);
      for (std::size_t k = 0; k < differences.size(); ++k) sums[k] += price * differences[k];
    }
  }
}

}  // namespace meshwright
