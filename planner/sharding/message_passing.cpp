#include "planner/sharding/message_passing.hpp"

#include <algorithm>

namespace meshwright {
namespace {

double subtract_least(std::span<double> values) {
  const double least = *std::ranges::min_element(values);
  for (double& value : values) value -= least;
  return least;
}

}  // namespace

MessagePassing::MessagePassing(const StrategyGraph& graph)
    : graph_(graph),
      sums_(graph.most_strategies()),
      sent_(graph.most_strategies()),
      rounded_(graph.node_count(), 0) {
  std::size_t size = 0;
  for (std::size_t e = 0; e < graph.edge_count(); ++e) {
    to_first_.push_back(size);
    size += graph.strategies(to_index(graph.edge(e).first));
    to_second_.push_back(size);
    size += graph.strategies(to_index(graph.edge(e).second));
  }
  messages_.resize(size, 0);
  for (std::size_t v = 0; v < graph.node_count(); ++v) {
    std::ptrdiff_t before = 0;
    for (const StrategyGraph::Neighbor& to : graph.neighbors(v))
      before += to_index(to.node) < v ? 1 : 0;
    const std::ptrdiff_t after = std::ssize(graph.neighbors(v)) - before;
    share_.push_back(1.0 / static_cast<double>(std::max<std::ptrdiff_t>({before, after, 1})));
  }
}

std::span<double> MessagePassing::reparametrized(std::size_t node, std::span<const double> prices) {
  const std::span<double> sum(sums_.data(), graph_.strategies(node));
  const std::span<const double> costs = graph_.costs(node);
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = costs[k] + prices[graph_.offset(node) + k];
  for (const StrategyGraph::Neighbor& to : graph_.neighbors(node)) {
    const std::span<const double> received = message(to.edge, to.is_first);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += received[k];
  }
  return sum;
}

void MessagePassing::sweep(std::span<const double> prices, bool forth) {
  bound_ = 0;
  const std::size_t count = graph_.node_count();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t v = forth ? i : count - 1 - i;
    const std::span<double> sum = reparametrized(v, prices);
    bound_ += subtract_least(sum);
    for (const StrategyGraph::Neighbor& to : graph_.neighbors(v)) {
      if ((to_index(to.node) > v) != forth) continue;
      const std::span<const double> received = message(to.edge, to.is_first);
      const std::span<double> sent = message(to.edge, !to.is_first);
      std::ranges::fill(sent, 4 * kForbiddenSum);
      for (std::size_t k = 0; k < sum.size(); ++k) {
        const double own = share_[v] * sum[k] - received[k];
        const std::span<const double> row = graph_.row(to, k);
        for (std::size_t j = 0; j < sent.size(); ++j) sent[j] = std::min(sent[j], own + row[j]);
      }
      bound_ += subtract_least(sent);
      for (double& value : sent) value = std::min(value, kForbiddenSum);
    }
  }
}

/// Node by node: the best strategy given those chosen before and the messages of the others.
void MessagePassing::round(std::span<const double> prices) {
  for (std::size_t v = 0; v < graph_.node_count(); ++v) {
    const std::span<double> sum = reparametrized(v, prices);
    for (const StrategyGraph::Neighbor& to : graph_.neighbors(v)) {
      if (to_index(to.node) > v) continue;
      const std::span<const double> received = message(to.edge, to.is_first);
      const StrategyGraph::Neighbor back{static_cast<std::int32_t>(v), to.edge, !to.is_first};
      const auto chosen = to_index(rounded_[to_index(to.node)]);
      const std::span<const double> row = graph_.row(back, chosen);
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += row[k] - received[k];
    }
    rounded_[v] = static_cast<std::int32_t>(std::ranges::min_element(sum) - sum.begin());
  }
}

/// After the pass back, every edge has a share of the costs of its later node. Its messages to
/// later nodes are what is best for them; so only edges to earlier nodes tell strategies apart.
std::vector<double> MessagePassing::reduced_costs(std::span<const double> prices) {
  std::vector<double> reduced(graph_.total_strategies());
  for (std::size_t v = 0; v < graph_.node_count(); ++v) {
    const std::span<double> sum = reparametrized(v, prices);
    subtract_least(sum);
    const std::span<double> own(reduced.data() + graph_.offset(v), sum.size());
    std::ptrdiff_t before = 0;
    for (const StrategyGraph::Neighbor& to : graph_.neighbors(v)) {
      if (to_index(to.node) > v) continue;
      ++before;
      const std::span<const double> received = message(to.edge, to.is_first);
      const std::span<const double> sent = message(to.edge, !to.is_first);
      std::vector<double>& rise = sent_;
      for (std::size_t k = 0; k < sum.size(); ++k) {
        const std::span<const double> row = graph_.row(to, k);
        double least = 4 * kForbiddenSum;
        for (std::size_t j = 0; j < row.size(); ++j) least = std::min(least, row[j] - sent[j]);
        rise[k] = least + share_[v] * sum[k] - received[k];
      }
      subtract_least({rise.data(), sum.size()});
      for (std::size_t k = 0; k < sum.size(); ++k) own[k] += rise[k];
    }
    const double left = 1 - static_cast<double>(before) * share_[v];
    for (std::size_t k = 0; k < sum.size(); ++k) own[k] += left * sum[k];
  }
  return reduced;
}

double MessagePassing::pass(std::span<const double> prices) {
  sweep(prices, true);
  sweep(prices, false);
  round(prices);
  return bound_;
}

}  // namespace meshwright
