#include "planner/sharding/sharding_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/indices.hpp"
#include "planner/sharding/message_passing.hpp"
#include "planner/sharding/strategy_graph.hpp"

namespace meshwright {
namespace {

/// Costs are whole; sums of doubles are rounded.
constexpr double kCostSlack = 0.5, kSumRounding = 1e-13;

class ShardingTree {
 public:
  explicit ShardingTree(const TreeOptions& options) : options_(options) {
    result_.cost = options.cutoff;
  }

  TreeResult run(const ReducedSharding& problem) {
    result_.is_complete = true;
    reduce_and_visit(problem);
    return std::move(result_);
  }

 private:
  /// What is known about a node of the tree.
  struct Relaxation {
    double bound = -std::numeric_limits<double>::infinity();
    std::vector<double> reduced_costs;  ///< above `bound`
  };

  /// Nothing with this bound is cheaper than the best choice so far.
  bool is_decided(double bound) const {
    return bound - kSumRounding * std::abs(bound) > result_.cost - kCostSlack;
  }

  void reduce_and_visit(const ReducedSharding& problem) {
    constexpr std::size_t kMostHeld = 1 << 26;
    ReducedSharding reduced = reduce_sharding(problem);
    if (reduced.is_impossible || is_decided(reduced.constant)) return;
    const std::size_t size = size_of(reduced);
    if (held_ + size > kMostHeld) {
      result_.is_complete = false;
      return;
    }
    held_ += size;
    chain_.push_back(&reduced);
    visit(reduced);
    chain_.pop_back();
    held_ -= size;
  }

  /// How many numbers a problem has.
  static std::size_t size_of(const ReducedSharding& problem) {
    std::size_t size = 0;
    for (const ReducedSharding::Edge& edge : problem.edges) size += edge.costs.size();
    for (const MemoryChanges& changes : problem.memory.nodes) size += changes.differences.size();
    for (const ReducedSharding::Choice& choice : problem.choices) size += choice.strategies.size();
    return size;
  }

  void visit(ReducedSharding& problem) {
    if (problem.costs.empty()) return record({}, problem.constant);
    if (++result_.nodes > options_.most_nodes || options_.stop()) {
      result_.is_complete = false;
      return;
    }
    const StrategyGraph graph(problem);
    const Relaxation relaxed = relax(problem, graph);
    if (!is_decided(relaxed.bound)) branch(problem, graph, relaxed);
  }

  /// Of the chain's last problem.
  void record(Strategies chosen, double cost) {
    if (cost >= result_.cost) return;
    for (auto it = chain_.rbegin(); it != chain_.rend(); ++it) chosen = expand(**it, chosen);
    result_.cost = cost;
    result_.best = std::move(chosen);
  }

  /// Raises the prices of times above the limit, lowers the others, and tries rounded choices.
  Relaxation relax(ReducedSharding& problem, const StrategyGraph& graph) {
    constexpr int kPasses = 12;
    constexpr double kGain = 1e-3;     ///< of the distance to the cutoff
    constexpr double kMostRise = 0.5;  ///< of the bound
    MemoryProfile& memory = problem.memory;
    MessagePassing messages(graph);
    std::vector<double> prices(graph.total_strategies());
    Relaxation best;
    std::vector<double> best_multipliers = memory.multipliers;
    double step = 1;
    for (int pass = 0; pass < kPasses; ++pass) {
      set_prices(graph, memory, 1, prices);
      const double bound = messages.pass(prices) + problem.constant - price_of_limit(memory);
      const std::vector<double> usages = usages_of(memory, messages.rounded());
      if (fits(memory, usages))
        record(messages.rounded(), graph.cost(messages.rounded()) + problem.constant);
      const double gain = bound - best.bound;
      if (gain > 0) {
        best = {bound, messages.reduced_costs(prices)};
        best_multipliers = memory.multipliers;
      } else {
        step /= 2;
        memory.multipliers = best_multipliers;
      }
      if (is_decided(best.bound)) break;
      if (pass >= 3 && std::abs(gain) < kGain * (result_.cost - best.bound)) break;
      const double rise = std::min(result_.cost - best.bound, kMostRise * std::abs(best.bound) + 1);
      ascend(usages, step * rise, memory);
    }
    memory.multipliers = best_multipliers;
    return best;
  }

  /// A node of the problem with its two cheapest strategies.
  struct Branch {
    std::size_t node = 0, strategy = 0;
    double rise = -1;  ///< of the bound without `strategy`; -1: no node has two
  };

  /// Removes strategies that cost too much. Returns where their removal costs most.
  Branch choose_branch(ReducedSharding& problem, const StrategyGraph& graph,
                       const Relaxation& relaxed, std::size_t& removed) {
    Branch best;
    for (std::size_t v = 0; v < graph.node_count(); ++v) {
      Branch own{v, 0, std::numeric_limits<double>::infinity()};
      double least = own.rise;
      for (std::size_t k = 0; k < graph.strategies(v); ++k) {
        const double rise = relaxed.reduced_costs[graph.offset(v) + k];
        if (is_decided(relaxed.bound + rise)) {
          problem.costs[v][k] = kForbiddenSum;
          ++removed;
          continue;
        }
        own.rise = std::min(own.rise, std::max(least, rise));
        if (rise < least) least = rise, own.strategy = k;
      }
      if (std::isfinite(own.rise) && own.rise > best.rise) best = own;
    }
    return best;
  }

  /// Changes the costs of the problem.
  void branch(ReducedSharding& problem, const StrategyGraph& graph, const Relaxation& relaxed) {
    std::size_t removed = 0;
    const Branch at = choose_branch(problem, graph, relaxed, removed);
    constexpr std::size_t kPart = 20;  ///< enough to look again before a choice
    if (at.rise < 0 || removed * kPart >= graph.total_strategies())
      return reduce_and_visit(problem);
    std::vector<double>& costs = problem.costs[at.node];
    std::vector<double> others = costs;
    std::ranges::fill(costs, kForbiddenSum);
    std::swap(costs[at.strategy], others[at.strategy]);
    reduce_and_visit(problem);
    if (!result_.is_complete || is_decided(relaxed.bound + at.rise)) return;
    costs = std::move(others);
    reduce_and_visit(problem);
  }

  const TreeOptions& options_;
  std::vector<const ReducedSharding*> chain_;  ///< from the problem to the one that is visited
  std::size_t held_ = 0;                       ///< numbers in them
  TreeResult result_;
};

}  // namespace

TreeResult search_tree(const ReducedSharding& problem, const TreeOptions& options) {
  return ShardingTree(options).run(problem);
}

}  // namespace meshwright
