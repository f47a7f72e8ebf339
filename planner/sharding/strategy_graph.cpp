#include "planner/sharding/strategy_graph.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace meshwright {
namespace {

double searched(std::int64_t cost) { return std::min(static_cast<double>(cost), kForbiddenSum); }

}  // namespace

StrategyGraph::StrategyGraph(const ShardingProblem& problem) {
  unary_begin_.push_back(0);
  for (const ShardingNode& node : problem.nodes) {
    for (const std::int64_t cost : node.costs) unary_.push_back(searched(cost));
    unary_begin_.push_back(unary_.size());
    most_strategies_ = std::max(most_strategies_, node.costs.size());
  }
  add_edges(problem);
  list_neighbors();
}

void StrategyGraph::add_edges(const ShardingProblem& problem) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<double>> sums;
  for (const ShardingEdge& edge : problem.edges) {
    const bool swapped = edge.first > edge.second;
    const std::size_t rows = strategies(index(edge.first)),
                      columns = strategies(index(edge.second));
    auto& sum = sums[std::minmax(edge.first, edge.second)];
    sum.resize(rows * columns, 0);
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t b = 0; b < columns; ++b) {
        double& to = sum[swapped ? b * rows + a : a * columns + b];
        to = std::min(to + searched(edge.costs[a * columns + b]), kForbiddenSum);
      }
  }
  std::map<std::pair<std::size_t, std::vector<double>>, std::int32_t> known;
  for (auto& [nodes, values] : sums) {
    const std::size_t rows = strategies(index(nodes.first)),
                      columns = strategies(index(nodes.second));
    const auto [place, is_new] =
        known.try_emplace({rows, std::move(values)}, static_cast<std::int32_t>(matrices_.size()));
    edges_.push_back({nodes.first, nodes.second, place->second});
    if (!is_new) continue;
    Matrix matrix{rows, columns, place->first.second, std::vector<double>(rows * columns)};
    for (std::size_t a = 0; a < rows; ++a)
      for (std::size_t b = 0; b < columns; ++b)
        matrix.transposed[b * rows + a] = matrix.values[a * columns + b];
    matrices_.push_back(std::move(matrix));
  }
}

void StrategyGraph::list_neighbors() {
  neighbor_begin_.assign(node_count() + 1, 0);
  for (const Edge& edge : edges_) {
    ++neighbor_begin_[index(edge.first) + 1];
    ++neighbor_begin_[index(edge.second) + 1];
  }
  for (std::size_t v = 0; v < node_count(); ++v) neighbor_begin_[v + 1] += neighbor_begin_[v];
  neighbors_.resize(neighbor_begin_.back());
  std::vector<std::size_t> next(neighbor_begin_.begin(), neighbor_begin_.end() - 1);
  for (std::size_t e = 0; e < edges_.size(); ++e) {
    const Edge& edge = edges_[e];
    neighbors_[next[index(edge.first)]++] = {edge.second, static_cast<std::int32_t>(e), true};
    neighbors_[next[index(edge.second)]++] = {edge.first, static_cast<std::int32_t>(e), false};
  }
}

double StrategyGraph::cost(const Strategies& chosen) const {
  double sum = 0;
  for (std::size_t v = 0; v < node_count(); ++v) {
    sum += costs(v)[index(chosen[v])];
    for (const Neighbor& to : neighbors(v))
      if (to.is_first) sum += row(to, index(chosen[v]))[index(chosen[index(to.node)])];
  }
  return sum;
}

}  // namespace meshwright
