#include "planner/sharding/forest_moves.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/indices.hpp"

namespace meshwright {

ForestMoves::ForestMoves(const StrategyGraph& graph, std::uint64_t seed)
    : graph_(graph),
      random_(seed),
      tree_(graph.node_count(), -1),
      parent_(graph.node_count(), -1),
      mark_(graph.node_count(), 0),
      sums_(graph.total_strategies()) {}

/// Breadth first from a node at random.
void ForestMoves::collect_candidates(std::size_t most) {
  const std::size_t count = graph_.node_count();
  candidates_.clear();
  if (most >= count) {
    candidates_.resize(count);
    std::iota(candidates_.begin(), candidates_.end(), 0);
    return;
  }
  ++round_;
  const auto add = [&](std::int32_t node) {
    if (mark_[to_index(node)] == round_) return;
    mark_[to_index(node)] = round_;
    candidates_.push_back(node);
  };
  add(static_cast<std::int32_t>(random_.next() % count));
  for (std::size_t i = 0; i < candidates_.size() && candidates_.size() < most; ++i)
    for (const StrategyGraph::Neighbor& to : graph_.neighbors(to_index(candidates_[i])))
      add(to.node);
}

std::int32_t ForestMoves::root_of(std::int32_t node) {
  while (tree_[to_index(node)] != node) {
    tree_[to_index(node)] = tree_[to_index(tree_[to_index(node)])];
    node = tree_[to_index(node)];
  }
  return node;
}

void ForestMoves::try_to_join(std::int32_t node) {
  std::vector<std::int32_t> roots;
  for (const StrategyGraph::Neighbor& to : graph_.neighbors(to_index(node))) {
    if (tree_[to_index(to.node)] < 0) continue;
    const std::int32_t root = root_of(to.node);
    if (std::ranges::find(roots, root) != roots.end()) return;
    roots.push_back(root);
  }
  tree_[to_index(node)] = node;
  for (const std::int32_t root : roots) tree_[to_index(root)] = node;
  order_.push_back(node);
}

void ForestMoves::choose_forest(std::size_t most) {
  for (const std::int32_t node : order_) tree_[to_index(node)] = -1;
  order_.clear();
  collect_candidates(most);
  for (std::size_t left = candidates_.size(); left > 1; --left)
    std::swap(candidates_[left - 1], candidates_[random_.next() % left]);
  for (const std::int32_t node : candidates_) try_to_join(node);
  orient();
}

/// Orders the nodes such that parents come before children.
void ForestMoves::orient() {
  ++round_;
  std::vector<std::int32_t> ordered;
  ordered.reserve(order_.size());
  for (const std::int32_t root : order_) {
    if (mark_[to_index(root)] == round_) continue;
    mark_[to_index(root)] = round_;
    parent_[to_index(root)] = -1;
    std::size_t next = ordered.size();
    ordered.push_back(root);
    for (; next < ordered.size(); ++next) {
      const std::int32_t node = ordered[next];
      for (const StrategyGraph::Neighbor& to : graph_.neighbors(to_index(node))) {
        if (tree_[to_index(to.node)] < 0 || mark_[to_index(to.node)] == round_) continue;
        mark_[to_index(to.node)] = round_;
        const auto back = graph_.neighbors(to_index(to.node));
        parent_[to_index(to.node)] = static_cast<std::int32_t>(
            std::ranges::find(back, to.edge, &StrategyGraph::Neighbor::edge) - back.begin());
        ordered.push_back(to.node);
      }
    }
  }
  order_ = std::move(ordered);
}

double ForestMoves::improve(std::span<const double> prices, Strategies& chosen) {
  for (const std::int32_t node : order_) {
    const std::size_t v = to_index(node), offset = graph_.offset(v);
    const std::span<double> sum(sums_.data() + offset, graph_.strategies(v));
    const std::span<const double> costs = graph_.costs(v);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = costs[k] + prices[offset + k];
    for (const StrategyGraph::Neighbor& to : graph_.neighbors(v)) {
      if (tree_[to_index(to.node)] >= 0) continue;
      const StrategyGraph::Neighbor back{node, to.edge, !to.is_first};
      const std::span<const double> row = graph_.row(back, to_index(chosen[to_index(to.node)]));
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += row[k];
    }
  }
  // The change of cost is the difference on the chosen strategies, before and after.
  double before = 0, after = 0;
  for (const std::int32_t node : order_) {
    const std::size_t v = to_index(node);
    before += sums_[graph_.offset(v) + to_index(chosen[v])];
    if (parent_[v] < 0) continue;
    const StrategyGraph::Neighbor& up = graph_.neighbors(v)[to_index(parent_[v])];
    before += graph_.row(up, to_index(chosen[v]))[to_index(chosen[to_index(up.node)])];
  }
  for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
    const std::size_t v = to_index(*it);
    const std::span<const double> sum(sums_.data() + graph_.offset(v), graph_.strategies(v));
    if (parent_[v] < 0) {
      after += *std::ranges::min_element(sum);
      continue;
    }
    const StrategyGraph::Neighbor& up = graph_.neighbors(v)[to_index(parent_[v])];
    const StrategyGraph::Neighbor back{*it, up.edge, !up.is_first};
    const std::size_t parent = to_index(up.node);
    for (std::size_t j = 0; j < graph_.strategies(parent); ++j) {
      const std::span<const double> row = graph_.row(back, j);
      double least = row[0] + sum[0];
      for (std::size_t k = 1; k < sum.size(); ++k) least = std::min(least, row[k] + sum[k]);
      sums_[graph_.offset(parent) + j] += least;
    }
  }
  if (after >= before) return 0;
  for (const std::int32_t node : order_) {
    const std::size_t v = to_index(node);
    const std::span<const double> sum(sums_.data() + graph_.offset(v), graph_.strategies(v));
    std::span<const double> row;
    if (parent_[v] >= 0) {
      const StrategyGraph::Neighbor& up = graph_.neighbors(v)[to_index(parent_[v])];
      const StrategyGraph::Neighbor back{node, up.edge, !up.is_first};
      row = graph_.row(back, to_index(chosen[to_index(up.node)]));
    }
    const auto total = [&](std::size_t k) { return sum[k] + (row.empty() ? 0 : row[k]); };
    std::size_t best = to_index(chosen[v]);
    for (std::size_t k = 0; k < sum.size(); ++k)
      if (total(k) < total(best)) best = k;
    chosen[v] = static_cast<std::int32_t>(best);
  }
  return before - after;
}

}  // namespace meshwright
