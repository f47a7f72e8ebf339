#include "planner/sharding/sharding_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/sharding/forest_moves.hpp"
#include "planner/sharding/memory_profile.hpp"
#include "planner/sharding/message_passing.hpp"

namespace meshwright {
namespace {

constexpr double kNoCost = std::numeric_limits<double>::infinity();

class ShardingSearch {
 public:
  ShardingSearch(const ShardingProblem& problem, const ShardingOptions& options)
      : problem_(problem),
        options_(options),
        graph_(problem),
        memory_(problem),
        messages_(graph_),
        moves_(graph_, options.seed),
        random_(options.seed),
        multipliers_(memory_.time_count(), 0),
        prices_(graph_.total_strategies(), 0),
        chosen_(graph_.node_count(), 0) {}

  ShardingResult run() {
    relax_without_memory();
    if (!is_done() && memory_.has_limit()) {
      raise_prices();
      price_memory();
    }
    if (best_.empty()) find_any_that_fits(1);
    while (!is_done() && !best_.empty()) move_within_memory();
    return result();
  }

 private:
  // ---- ends ----

  /// Share of the steps or of the time.
  double used() const {
    return std::max(static_cast<double>(steps_) / static_cast<double>(options_.steps),
                    options_.time_used());
  }
  bool is_out_of_time() const { return used() >= 1; }
  bool is_done() { return is_out_of_time() || best_cost_ <= std::ceil(bound_ - kBoundSlack); }

  /// Sums of doubles are rounded; costs are whole.
  static constexpr double kBoundSlack = 0.5;

  ShardingResult result() const {
    ShardingResult result;
    const double safe = std::ceil(bound_ - kBoundSlack - 1e-9 * std::abs(bound_));
    // The bound of a problem in which nothing fits has no limit.
    result.lower_bound =
        static_cast<std::int64_t>(std::clamp(safe, 0.0, static_cast<double>(kForbiddenCost)));
    if (best_.empty()) return result;
    result.best = evaluate_sharding(problem_, best_);
    result.lower_bound = std::min(result.lower_bound, result.best->cost);
    return result;
  }

  // ---- prices ----

  /// Price of the memory of every strategy, from the multipliers of the times times `factor`.
  void set_prices(double factor) {
    sums_.assign(multipliers_.size() + 1, 0);
    for (std::size_t t = 0; t < multipliers_.size(); ++t)
      sums_[t + 1] = sums_[t] + factor * multipliers_[t];
    for (std::size_t v = 0; v < graph_.node_count(); ++v) {
      const MemoryProfile::Range& range = memory_.range(v);
      const double price = sums_[static_cast<std::size_t>(range.last)] -
                           sums_[static_cast<std::size_t>(range.first)];
      for (std::size_t k = 0; k < graph_.strategies(v); ++k)
        prices_[graph_.offset(v) + k] = price > 0 ? price * memory_.usage(v, k) : 0;
    }
  }

  /// Keeps the choice if it fits and is the cheapest one so far.
  bool keep(const Strategies& chosen) {
    const double cost = graph_.cost(chosen);
    if (cost >= best_cost_ || cost >= kForbiddenSum) return false;
    if (!memory_.fits(memory_.usages_of(chosen))) return false;
    best_cost_ = cost;
    best_ = chosen;
    return true;
  }

  // ---- first phase: message passing ----

  void relax_without_memory() {
    constexpr int kMostPasses = 300;
    double last = -kNoCost;
    for (int i = 0; i < kMostPasses && !is_done(); ++i, ++steps_) {
      bound_ = std::max(bound_, messages_.pass(prices_));
      polish(messages_.rounded(), i % 10 == 0 ? 3 : 0);
      constexpr double kGain = 1e-5;
      if (i % 10 == 9) {
        if (bound_ - last <= kGain * std::abs(bound_)) break;
        last = bound_;
      }
    }
    polish(messages_.rounded(), 10);
  }

  /// The rounded choice, improved by moves under the current prices.
  void polish(const Strategies& rounded, int rounds) {
    Strategies other = rounded;
    for (int round = 0; round < rounds && !is_out_of_time(); ++round) {
      moves_.choose_forest(graph_.node_count());
      moves_.improve(prices_, chosen_);
      moves_.improve(prices_, other);
    }
    if (priced_cost(other) < priced_cost(chosen_)) chosen_ = std::move(other);
    keep(chosen_);
  }

  double priced_cost(const Strategies& chosen) const {
    double sum = graph_.cost(chosen);
    for (std::size_t v = 0; v < chosen.size(); ++v)
      sum += prices_[graph_.offset(v) + static_cast<std::size_t>(chosen[v])];
    return sum;
  }

  /// A lower bound after up to `passes` passes under the current prices, fewer if it stays.
  double bound_at_prices(int passes) {
    constexpr double kGain = 1e-4;
    double bound = -kNoCost;
    for (int i = 0; i < passes; ++i) {
      const double before = std::exchange(bound, messages_.pass(prices_));
      if (bound - before < kGain * std::abs(bound)) break;
    }
    for (const double multiplier : multipliers_) bound -= multiplier * memory_.limit();
    bound_ = std::max(bound_, bound);
    return bound;
  }

  /// From nothing, in large steps, until something fits or a part of the time is over.
  void raise_prices() {
    constexpr int kPart = 3;
    find_any_that_fits(used() + (1 - used()) / kPart);
  }

  /// Subgradient ascent: raises the multipliers of times above the limit, lowers those below it.
  void price_memory() {
    constexpr int kMostSteps = 2000;
    double step = 1;
    double best_bound = -kNoCost;
    int since_better = 0;
    std::vector<double> best_multipliers = multipliers_;
    const double end = used() + (1 - used()) / 2;
    for (int i = 0; i < kMostSteps && !is_done(); ++i, ++steps_) {
      if (used() > end) break;  // the rest is for moves
      set_prices(1);
      const double bound = bound_at_prices(3);
      if (bound > best_bound) {
        best_bound = bound;
        best_multipliers = multipliers_;
        since_better = 0;
      } else if (++since_better > 10) {
        step /= 2;
        since_better = 0;
        multipliers_ = best_multipliers;
        if (step < 1e-4) break;
      }
      polish(messages_.rounded(), 3);
      if (i % 10 == 9) fit(chosen_);
      ascend(step, bound);
    }
    multipliers_ = best_multipliers;
    set_prices(1);
  }

  void ascend(double step, double bound) {
    const std::vector<double> used = memory_.usages_of(chosen_);
    double squares = 0;
    for (std::size_t t = 0; t < used.size(); ++t) {
      const double over = used[t] - memory_.limit();
      if (over > 0 || multipliers_[t] > 0) squares += over * over;
    }
    if (squares == 0) return;
    const double target = std::min(best_cost_, bound + 0.05 * std::abs(bound) + 1);
    const double size = step * std::max(target - bound, 1e-4 * std::abs(target)) / squares;
    for (std::size_t t = 0; t < used.size(); ++t)
      multipliers_[t] = std::max(0.0, multipliers_[t] + size * (used[t] - memory_.limit()));
  }

  // ---- choices that fit ----

  /// Raises the prices of times above the limit until the choice fits.
  bool fit(Strategies chosen) {
    constexpr int kMostRounds = 30;
    const std::vector<double> kept = multipliers_;
    bool fits = false;
    for (int round = 0; round < kMostRounds && !is_out_of_time(); ++round) {
      const std::vector<double> used = memory_.usages_of(chosen);
      if (memory_.fits(used)) {
        fits = graph_.cost(chosen) < kForbiddenSum;
        break;
      }
      raise(used);
      set_prices(1);
      Strategies other = (messages_.pass(prices_), messages_.rounded());
      for (int i = 0; i < 2; ++i) {
        moves_.choose_forest(graph_.node_count());
        moves_.improve(prices_, chosen);
        moves_.improve(prices_, other);
      }
      if (priced_cost(other) < priced_cost(chosen)) chosen = std::move(other);
    }
    if (fits) keep(chosen);
    multipliers_ = kept;
    set_prices(1);
    return fits;
  }

  void raise(const std::vector<double>& used) {
    const double floor = typical_multiplier();
    for (std::size_t t = 0; t < used.size(); ++t) {
      const double over = used[t] / memory_.limit() - 1;
      if (over <= 0) continue;
      multipliers_[t] = std::max(multipliers_[t], floor) * (1.02 + 0.3 * std::min(over, 1.0));
    }
  }

  /// So that memory at the limit at all times costs a hundredth of everything.
  double typical_multiplier() const {
    const double scale = best_.empty() ? std::max(1.0, std::abs(bound_)) : best_cost_;
    const double at_limit = memory_.limit() * static_cast<double>(memory_.time_count());
    return 1e-2 * scale / std::max(1.0, at_limit);
  }

  void find_any_that_fits(double end) {
    while (best_.empty() && used() < std::min(1.0, end)) {
      ++steps_;
      raise(memory_.usages_of(chosen_));
      set_prices(1);
      polish((bound_at_prices(1), messages_.rounded()), 3);
      if (best_.empty() && steps_ % 4 == 0) fit(chosen_);
    }
  }

  /// A forest of random size, with prices scaled at random; kept if it fits and costs no more.
  void move_within_memory() {
    ++steps_;
    constexpr std::array<double, 6> kFactors{1, 1, 0.5, 0.8, 1.25, 2};
    constexpr std::array<double, 6> kSizes{1.0, 0.3, 0.1, 0.03, 0.01, 0.003};
    const double factor = memory_.has_limit() ? kFactors[random_.next() % kFactors.size()] : 0;
    if (factor != factor_) {
      factor_ = factor;
      set_prices(factor);
    }
    const double size = kSizes[random_.next() % kSizes.size()];
    const auto most =
        static_cast<std::size_t>(std::max(8.0, size * static_cast<double>(graph_.node_count())));
    moves_.choose_forest(most);
    Strategies changed = best_;
    if (moves_.improve(prices_, changed) <= 0) return;
    const double cost = graph_.cost(changed);
    if (cost > best_cost_ || !memory_.fits(memory_.usages_of(changed))) return;
    best_cost_ = cost;
    best_ = std::move(changed);
  }

  const ShardingProblem& problem_;
  const ShardingOptions& options_;
  StrategyGraph graph_;
  MemoryProfile memory_;
  MessagePassing messages_;
  ForestMoves moves_;
  Chance random_;
  std::vector<double> multipliers_;  ///< by time
  std::vector<double> prices_;       ///< by strategy of all nodes
  std::vector<double> sums_;
  double factor_ = -1;
  Strategies chosen_, best_;
  double best_cost_ = kNoCost, bound_ = -kNoCost;
  std::int64_t steps_ = 0;
};

}  // namespace

ShardingResult search_sharding(const ShardingProblem& problem, const ShardingOptions& options) {
  return ShardingSearch(problem, options).run();
}

ShardingChoice evaluate_sharding(const ShardingProblem& problem, Strategies strategies) {
  ShardingChoice choice;
  const auto at = [&](std::int32_t node) {
    return static_cast<std::size_t>(strategies[static_cast<std::size_t>(node)]);
  };
  const auto add = [&](std::int64_t cost) {
    choice.cost = std::min(kForbiddenCost, choice.cost + std::min(cost, kForbiddenCost));
  };
  for (std::size_t v = 0; v < problem.nodes.size(); ++v)
    add(problem.nodes[v].costs[at(static_cast<std::int32_t>(v))]);
  for (const ShardingEdge& edge : problem.edges)
    add(edge.costs[at(edge.first) *
                       problem.nodes[static_cast<std::size_t>(edge.second)].costs.size() +
                   at(edge.second)]);
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // time, usage
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const ShardingNode& node = problem.nodes[v];
    const std::int64_t usage = node.usages[at(static_cast<std::int32_t>(v))];
    if (node.begin >= node.end) continue;
    changes.emplace_back(node.begin, usage);
    changes.emplace_back(node.end, -usage);
  }
  std::ranges::sort(changes);  // releases come first
  std::int64_t used = 0;
  for (const auto& [time, change] : changes)
    choice.peak_usage = std::max(choice.peak_usage, used += change);
  choice.strategies = std::move(strategies);
  return choice;
}

}  // namespace meshwright
