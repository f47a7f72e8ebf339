#include "planner/sharding/sharding_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/indices.hpp"
#include "planner/sharding/forest_moves.hpp"
#include "planner/sharding/memory_profile.hpp"
#include "planner/sharding/message_passing.hpp"
#include "planner/sharding/sharding_part.hpp"
#include "planner/sharding/sharding_tree.hpp"

namespace meshwright {
namespace {

constexpr double kNoCost = std::numeric_limits<double>::infinity();

/// If no choice costs less than kForbiddenSum: what all choices that fit cost at least.
std::int64_t bound_without_choice(const ShardingProblem& problem) {
  double most = 0;
  const auto add_most = [&](const std::vector<std::int64_t>& costs) {
    std::int64_t highest = 0;
    for (const std::int64_t cost : costs)
      if (cost < kForbiddenCost) highest = std::max(highest, cost);
    most += static_cast<double>(highest);
  };
  for (const ShardingNode& node : problem.nodes) add_most(node.costs);
  for (const ShardingEdge& edge : problem.edges) add_most(edge.costs);
  return most < kForbiddenSum ? kForbiddenCost : static_cast<std::int64_t>(kForbiddenSum);
}

class ShardingSearch {
 public:
  ShardingSearch(const ShardingProblem& problem, const ShardingOptions& options)
      : problem_(problem),
        options_(options),
        reduced_(reduce_sharding(unreduced(problem))),
        graph_(reduced_),
        memory_(reduced_.memory),
        limit_(static_cast<double>(problem.usage_limit.value_or(0))),
        messages_(graph_),
        moves_(graph_, options.seed),
        random_(options.seed),
        prices_(graph_.total_strategies(), 0),
        chosen_(graph_.node_count(), 0) {}

  ShardingResult run() {
    if (reduced_.is_impossible) return {.best = {}, .lower_bound = bound_without_choice(problem_)};
    relax_without_memory();
    if (!is_done() && has_limit()) {
      constexpr int kPart = 10;
      find_any_that_fits(used() + (1 - used()) / kPart);
      price_memory();
    }
    while (!is_done()) has_best() ? improve() : find_first();
    return result();
  }

 private:
  bool has_limit() const { return memory_.time_count() > 0; }
  bool has_best() const { return best_cost_ < kNoCost; }

  // ---- ends ----

  /// Share of the steps or of the time.
  double used() const {
    if (steps_ >= options_.steps) return 1;
    return std::max(static_cast<double>(steps_) / static_cast<double>(options_.steps),
                    options_.time_used());
  }
  bool is_out_of_time() const { return used() >= 1; }
  bool is_done() const { return is_proved_ || is_out_of_time() || best_cost_ <= safe_bound(); }

  /// Sums of doubles are rounded; costs are whole.
  double safe_bound() const {
    constexpr double kSlack = 0.5, kRounding = 1e-9;
    return std::ceil(bound_ - kSlack - kRounding * std::abs(bound_));
  }

  ShardingResult result() const {
    ShardingResult result;
    // Prices raise the bound without limit if nothing fits.
    const double bound = std::clamp(safe_bound(), 0.0, kForbiddenSum);
    result.lower_bound =
        static_cast<std::int64_t>(is_proved_ ? std::min(best_cost_, kForbiddenSum) : bound);
    if (!has_best()) {
      if (result.lower_bound >= static_cast<std::int64_t>(kForbiddenSum))
        result.lower_bound = bound_without_choice(problem_);
      return result;
    }
    result.best = evaluate_sharding(problem_, expand(reduced_, best_));
    result.lower_bound = std::min(result.lower_bound, result.best->cost);
    return result;
  }

  // ---- prices ----

  /// Price of the memory of every strategy, from the multipliers of the times times `factor`.
  void set_prices(double factor) { meshwright::set_prices(graph_, memory_, factor, prices_); }

  /// Keeps the choice if it fits and is the cheapest one so far.
  void keep(const Strategies& chosen) {
    const double cost = cost_of(chosen);
    if (cost >= best_cost_ || cost >= kForbiddenSum) return;
    if (!fits(memory_, usages_of(memory_, chosen))) return;
    best_cost_ = cost;
    best_ = chosen;
  }

  // ---- first phase: message passing ----

  void relax_without_memory() {
    constexpr int kMostPasses = 300;
    double last = -kNoCost;
    for (int i = 0; i < kMostPasses && !is_done(); ++i, ++steps_) {
      bound_ = std::max(bound_, messages_.pass(prices_) + reduced_.constant);
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

  double cost_of(const Strategies& chosen) const { return graph_.cost(chosen) + reduced_.constant; }

  double priced_cost(const Strategies& chosen) const {
    double sum = cost_of(chosen);
    for (std::size_t v = 0; v < chosen.size(); ++v)
      sum += prices_[graph_.offset(v) + to_index(chosen[v])];
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
    bound += reduced_.constant;
    bound -= price_of_limit(memory_);
    bound_ = std::max(bound_, bound);
    return bound;
  }

  /// Multipliers with a high bound, by subgradient ascent.
  void price_memory() {
    constexpr int kMostSteps = 2000;
    double step = 1;
    double best_bound = -kNoCost;
    int since_better = 0;
    std::vector<double> best_multipliers = memory_.multipliers;
    constexpr int kPart = 4;  // the rest is for parts
    const double end = used() + (1 - used()) / kPart;
    for (int i = 0; i < kMostSteps && !is_done(); ++i, ++steps_) {
      if (used() > end) break;
      set_prices(1);
      const double bound = bound_at_prices(3);
      if (bound > best_bound) {
        best_bound = bound;
        best_multipliers = memory_.multipliers;
        since_better = 0;
      } else if (++since_better > 10) {
        step /= 2;
        since_better = 0;
        memory_.multipliers = best_multipliers;
        if (step < 1e-4) break;
      }
      polish(messages_.rounded(), 1);
      if (i % 10 == 9) fit(chosen_);
      const double target = std::min(best_cost_, bound + 0.05 * std::abs(bound) + 1);
      const double rise = step * std::max(target - bound, 1e-4 * std::abs(target));
      ascend(usages_of(memory_, chosen_), rise, memory_);
    }
    memory_.multipliers = best_multipliers;
    set_prices(1);
  }

  // ---- choices that fit ----

  /// Raises the prices of times above the limit until the choice fits, and keeps it then.
  void fit(Strategies chosen) {
    constexpr int kMostRounds = 30;
    const std::vector<double> before = memory_.multipliers;
    for (int round = 0; round < kMostRounds && !is_out_of_time(); ++round) {
      const std::vector<double> used = usages_of(memory_, chosen);
      if (fits(memory_, used)) {
        keep(chosen);
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
    memory_.multipliers = before;
    set_prices(1);
  }

  void raise(const std::vector<double>& used) {
    const double floor = typical_multiplier();
    for (std::size_t t = 0; t < used.size(); ++t) {
      const double over = (used[t] - memory_.left[t]) / limit_;
      if (over <= 0) continue;
      memory_.multipliers[t] =
          std::max(memory_.multipliers[t], floor) * (1.05 + std::min(over, 1.0));
    }
  }

  /// So that memory at the limit at all times costs a hundredth of everything.
  double typical_multiplier() const {
    const double scale = !has_best() ? std::max(1.0, std::abs(bound_)) : best_cost_;
    const double at_limit = limit_ * static_cast<double>(memory_.time_count());
    return 1e-2 * scale / std::max(1.0, at_limit);
  }

  void find_any_that_fits(double end) {
    while (!has_best() && used() < std::min(1.0, end)) {
      ++steps_;
      raise(usages_of(memory_, chosen_));
      set_prices(1);
      polish((bound_at_prices(1), messages_.rounded()), 3);
      if (!has_best() && steps_ % 4 == 0) fit(chosen_);
    }
  }

  // ---- parts ----

  void improve() {
    constexpr int kMovesPerPart = 10;
    search_part();
    for (int i = 0; i < kMovesPerPart && !is_done(); ++i) move_within_memory();
  }

  void find_first() {
    constexpr int kPart = 10;
    find_any_that_fits(used() + (1 - used()) / kPart);
    if (!has_best()) search_whole();
  }

  /// Chooses some nodes again; their number is such that about every second search is complete.
  void search_part() {
    constexpr double kMore = 1.1, kFewer = 0.9, kLeast = 4;
    const auto size = static_cast<std::size_t>(part_size_);
    const bool is_complete = search_nodes(size);
    part_size_ = std::clamp(part_size_ * (is_complete ? kMore : kFewer), kLeast,
                            std::max(kLeast, static_cast<double>(graph_.node_count())));
    if (!is_complete) most_tree_nodes_ += most_tree_nodes_ / 10;
  }

  bool search_nodes(std::size_t size) {
    ++steps_;
    const std::vector<std::int32_t> nodes = choose_part(graph_, memory_, size, random_);
    const ReducedSharding part = part_of(graph_, memory_, best_, nodes);
    Strategies now;
    for (const std::int32_t node : nodes) now.push_back(best_[to_index(node)]);
    const TreeResult found = search_tree(part, tree_options(StrategyGraph(part).cost(now)));
    if (found.best) {
      for (std::size_t i = 0; i < nodes.size(); ++i) best_[to_index(nodes[i])] = (*found.best)[i];
      best_cost_ = cost_of(best_);
    }
    // Not search_whole(): here the nodes have another order each time.
    is_proved_ = found.is_complete && nodes.size() == graph_.node_count();
    return found.is_complete;
  }

  /// Without a choice so far.
  void search_whole() {
    ++steps_;
    const TreeResult found = search_tree(reduced_, tree_options(kForbiddenSum));
    if (found.best) {
      best_ = *found.best;
      best_cost_ = found.cost;
    }
    is_proved_ = found.is_complete;
  }

  TreeOptions tree_options(double cutoff) const {
    return {.cutoff = cutoff, .most_nodes = most_tree_nodes_, .stop = [this] {
              return is_out_of_time();
            }};
  }

  /// A forest of random size, with prices scaled at random; kept if it fits and costs no more.
  void move_within_memory() {
    ++steps_;
    constexpr std::array<double, 6> kFactors{1, 1, 0.5, 0.8, 1.25, 2};
    constexpr std::array<double, 6> kSizes{1.0, 0.3, 0.1, 0.03, 0.01, 0.003};
    const double factor = has_limit() ? kFactors[random_.next() % kFactors.size()] : 0;
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
    const double cost = cost_of(changed);
    if (cost > best_cost_ || !fits(memory_, usages_of(memory_, changed))) return;
    best_cost_ = cost;
    best_ = std::move(changed);
  }

  const ShardingProblem& problem_;
  const ShardingOptions& options_;
  ReducedSharding reduced_;
  StrategyGraph graph_;
  MemoryProfile& memory_;
  double limit_;
  MessagePassing messages_;
  ForestMoves moves_;
  Chance random_;
  std::vector<double> prices_;  ///< by strategy of all nodes
  double factor_ = -1;
  double part_size_ = 20;
  std::int64_t most_tree_nodes_ = 200;
  bool is_proved_ = false;
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
    return static_cast<std::size_t>(strategies[to_index(node)]);
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
