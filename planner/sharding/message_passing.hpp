/// Sequential tree-reweighted message passing (TRW-S; Kolmogorov, IEEE PAMI 28(10), 2006): a lower
/// bound on the cost of all choices of strategies, and a choice rounded from the messages.
#pragma once

#include <span>
#include <vector>

#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {

class MessagePassing {
 public:
  explicit MessagePassing(const StrategyGraph& graph);

  /// One pass forth and one back, with `prices` (by strategy of all nodes) added to the costs of
  /// the nodes. Messages are kept between calls, also if prices change: every bound holds.
  /// Returns the bound. Time: one step per element of the matrices of all edges.
  double pass(std::span<const double> prices);
  /// After a pass with these prices, by strategy of all nodes: by how much its bound rises at least
  /// if the node has this strategy.
  std::vector<double> reduced_costs(std::span<const double> prices);
  /// Strategies that follow from the messages of the last pass.
  const Strategies& rounded() const { return rounded_; }

 private:
  void sweep(std::span<const double> prices, bool forth);
  void round(std::span<const double> prices);
  std::span<double> message(std::int32_t edge, bool to_first) {
    const std::size_t e = to_index(edge);
    return {messages_.data() + (to_first ? to_first_[e] : to_second_[e]),
            to_first ? graph_.strategies(to_index(graph_.edge(e).first))
                     : graph_.strategies(to_index(graph_.edge(e).second))};
  }
  /// Costs, prices and all messages to a node, in `sums_`.
  std::span<double> reparametrized(std::size_t node, std::span<const double> prices);

  const StrategyGraph& graph_;
  std::vector<double> messages_, sums_, sent_;
  std::vector<std::size_t> to_first_, to_second_;  ///< by edge: place of the message to that node
  std::vector<double> share_;                      ///< by node
  Strategies rounded_;
  double bound_ = 0;
};

}  // namespace meshwright
