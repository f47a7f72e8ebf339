#include "planner/sharding/reduced_sharding.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/indices.hpp"
#include "planner/sharding/least_memory.hpp"

namespace meshwright {
namespace {

double clamped(double cost) { return std::min(cost, kForbiddenSum); }

std::vector<double> clamped(const std::vector<std::int64_t>& costs) {
  std::vector<double> values;
  values.reserve(costs.size());
  for (const std::int64_t cost : costs) values.push_back(clamped(static_cast<double>(cost)));
  return values;
}

class Reducer {
 public:
  explicit Reducer(const ReducedSharding& problem);
  ReducedSharding run();

 private:
  using Edge = ReducedSharding::Edge;

  /// The costs of an edge as seen from one of its nodes.
  class Side {
   public:
    Side(const Reducer& reducer, std::int32_t node, std::int32_t edge)
        : edge_(reducer.edges_[to_index(edge)]),
          is_first_(edge_.first == node),
          columns_(reducer.costs_[to_index(edge_.second)].size()) {}
    double operator()(std::size_t own, std::size_t other) const {
      return edge_.costs[is_first_ ? own * columns_ + other : other * columns_ + own];
    }

   private:
    const Edge& edge_;
    bool is_first_;
    std::size_t columns_;
  };

  bool is_allowed(std::int32_t node, std::size_t strategy) const {
    return costs_[to_index(node)][strategy] < kForbiddenSum;
  }
  std::vector<std::int32_t> allowed(std::int32_t node) const;

  void add_edge(std::int32_t a, std::int32_t b, const std::vector<double>& costs);
  void remove_edge(std::int32_t edge);
  void wake(std::int32_t node);
  void wake_neighbors(std::int32_t node);

  bool visit(std::int32_t node);
  bool prune(std::int32_t node);
  void drop_constant_changes(std::int32_t node);
  void remove_dominated(std::int32_t node);
  bool never_uses_more(std::int32_t node, std::size_t strategy, std::size_t than) const;
  bool never_costs_more(std::int32_t node, std::size_t strategy, std::size_t than) const;
  void fix(std::int32_t node, std::int32_t strategy);
  bool follow_any(std::int32_t node);
  std::optional<std::vector<std::int32_t>> following(std::int32_t node, std::int32_t edge) const;
  bool has_room(std::int32_t node, std::int32_t leader) const;
  void follow(std::int32_t node, std::int32_t edge, std::vector<std::int32_t> strategy);
  bool marginalize(std::int32_t node);
  std::vector<double> left() const;
  bool remove_exceeding();
  ReducedSharding result();
  ReducedSharding impossible();

  std::vector<std::vector<double>> costs_;
  std::vector<MemoryChanges> memory_;
  std::vector<double> fixed_;  ///< by time: differences of memory that does not depend on nodes
  std::vector<Edge> edges_;
  std::vector<std::map<std::int32_t, std::int32_t>> adjacent_;  ///< edge by neighbor
  std::vector<bool> is_alive_;
  std::set<std::pair<std::size_t, std::int32_t>> waiting_;  ///< few neighbors first
  std::vector<std::size_t> waits_with_;                     ///< neighbors when it was woken
  std::size_t cells_ = 0, most_cells_ = 0;                  ///< differences of memory
  ReducedSharding reduced_;
};

Reducer::Reducer(const ReducedSharding& problem)
    : costs_(problem.costs),
      memory_(problem.memory.nodes),
      fixed_(problem.memory.time_count() + 1, 0),
      adjacent_(problem.costs.size()),
      is_alive_(problem.costs.size(), true),
      waits_with_(problem.costs.size(), SIZE_MAX) {
  constexpr std::size_t kRoom = 1 << 24;
  for (const MemoryChanges& changes : memory_) cells_ += changes.differences.size();
  most_cells_ = 4 * cells_ + kRoom;
  for (const Edge& edge : problem.edges) add_edge(edge.first, edge.second, edge.costs);
  for (std::size_t v = 0; v < costs_.size(); ++v) wake(static_cast<std::int32_t>(v));
  reduced_.constant = problem.constant;
  reduced_.memory.left = problem.memory.left;
  reduced_.memory.multipliers = problem.memory.multipliers;
}

std::vector<std::int32_t> Reducer::allowed(std::int32_t node) const {
  std::vector<std::int32_t> strategies;
  for (std::size_t k = 0; k < costs_[to_index(node)].size(); ++k)
    if (is_allowed(node, k)) strategies.push_back(static_cast<std::int32_t>(k));
  return strategies;
}

/// By strategy of `a`, then of `b`. Added to an edge that is there.
void Reducer::add_edge(std::int32_t a, std::int32_t b, const std::vector<double>& costs) {
  const std::size_t rows = costs_[to_index(a)].size(), columns = costs_[to_index(b)].size();
  const auto [place, is_new] =
      adjacent_[to_index(a)].try_emplace(b, static_cast<std::int32_t>(edges_.size()));
  if (is_new) {
    adjacent_[to_index(b)].emplace(a, place->second);
    edges_.push_back({std::min(a, b), std::max(a, b), std::vector<double>(rows * columns, 0)});
  }
  std::vector<double>& sums = edges_[to_index(place->second)].costs;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      double& sum = sums[a < b ? i * columns + j : j * rows + i];
      sum = clamped(sum + costs[i * columns + j]);
    }
}

void Reducer::remove_edge(std::int32_t edge) {
  Edge& removed = edges_[to_index(edge)];
  adjacent_[to_index(removed.first)].erase(removed.second);
  adjacent_[to_index(removed.second)].erase(removed.first);
  removed.costs = {};
}

void Reducer::wake(std::int32_t node) {
  std::size_t& with = waits_with_[to_index(node)];
  if (with != SIZE_MAX) waiting_.erase({with, node});
  with = adjacent_[to_index(node)].size();
  waiting_.emplace(with, node);
}

void Reducer::wake_neighbors(std::int32_t node) {
  for (const auto& [neighbor, edge] : adjacent_[to_index(node)]) wake(neighbor);
}

/// Removes strategies that a neighbor never allows. False: none is left.
bool Reducer::prune(std::int32_t node) {
  std::vector<double>& costs = costs_[to_index(node)];
  bool is_changed = false;
  for (const auto& [neighbor, edge] : adjacent_[to_index(node)]) {
    const Side side(*this, node, edge);
    const std::vector<std::int32_t> others = allowed(neighbor);
    for (std::size_t k = 0; k < costs.size(); ++k) {
      if (costs[k] >= kForbiddenSum) continue;
      if (std::ranges::any_of(
              others, [&](std::int32_t other) { return side(k, to_index(other)) < kForbiddenSum; }))
        continue;
      costs[k] = kForbiddenSum;
      is_changed = true;
    }
  }
  if (is_changed) wake_neighbors(node);
  return std::ranges::any_of(costs, [](double cost) { return cost < kForbiddenSum; });
}

/// Changes that are the same under all strategies do not depend on the node.
void Reducer::drop_constant_changes(std::int32_t node) {
  MemoryChanges& changes = memory_[to_index(node)];
  if (changes.times.empty()) return;
  cells_ -= changes.differences.size();
  normalize(changes);
  const std::vector<std::int32_t> strategies = allowed(node);
  MemoryChanges left;
  for (std::size_t i = 0; i < changes.times.size(); ++i) {
    const std::span<const double> differences = changes.at(i);
    const double first = differences[to_index(strategies[0])];
    if (std::ranges::all_of(strategies,
                            [&](std::int32_t k) { return differences[to_index(k)] == first; })) {
      fixed_[to_index(changes.times[i])] += first;
      continue;
    }
    left.times.push_back(changes.times[i]);
    left.differences.insert(left.differences.end(), differences.begin(), differences.end());
  }
  changes = std::move(left);
  cells_ += changes.differences.size();
}

bool Reducer::never_uses_more(std::int32_t node, std::size_t strategy, std::size_t than) const {
  const MemoryChanges& changes = memory_[to_index(node)];
  double more = 0;
  for (std::size_t i = 0; i < changes.times.size(); ++i)
    if ((more += changes.at(i)[strategy] - changes.at(i)[than]) > 0) return false;
  return true;
}

/// Whatever the neighbors choose.
bool Reducer::never_costs_more(std::int32_t node, std::size_t strategy, std::size_t than) const {
  double more = costs_[to_index(node)][strategy] - costs_[to_index(node)][than];
  for (const auto& [neighbor, edge] : adjacent_[to_index(node)]) {
    const Side side(*this, node, edge);
    double most = -kForbiddenSum;
    for (std::size_t j = 0; j < costs_[to_index(neighbor)].size(); ++j) {
      if (!is_allowed(neighbor, j) || side(than, j) >= kForbiddenSum) continue;
      if (side(strategy, j) >= kForbiddenSum) return false;
      most = std::max(most, side(strategy, j) - side(than, j));
    }
    more += most;
  }
  return more <= 0;
}

/// Removes strategies beside which another one is never worse. Expects changes without constants.
void Reducer::remove_dominated(std::int32_t node) {
  constexpr std::size_t kMostSteps = 1 << 22;
  std::size_t size = memory_[to_index(node)].times.size();
  for (const auto& [neighbor, edge] : adjacent_[to_index(node)])
    size += costs_[to_index(neighbor)].size();
  std::vector<std::int32_t> left = allowed(node);
  if (left.size() * left.size() * size > kMostSteps) return;
  bool is_changed = false;
  for (std::size_t i = left.size(); i-- > 0;) {
    const std::size_t than = to_index(left[i]);
    if (!std::ranges::any_of(left, [&](std::int32_t other) {
          return other != left[i] && never_uses_more(node, to_index(other), than) &&
                 never_costs_more(node, to_index(other), than);
        }))
      continue;
    costs_[to_index(node)][than] = kForbiddenSum;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
    is_changed = true;
  }
  if (is_changed) wake_neighbors(node), drop_constant_changes(node);
}

void Reducer::fix(std::int32_t node, std::int32_t strategy) {
  while (!adjacent_[to_index(node)].empty()) {
    const auto [neighbor, edge] = *adjacent_[to_index(node)].begin();
    const Side side(*this, node, edge);
    std::vector<double>& costs = costs_[to_index(neighbor)];
    for (std::size_t k = 0; k < costs.size(); ++k)
      costs[k] = clamped(costs[k] + side(to_index(strategy), k));
    remove_edge(edge);
    wake(neighbor);
  }
  reduced_.constant += costs_[to_index(node)][to_index(strategy)];
  reduced_.choices.push_back({.node = node, .strategies = {strategy}});
  is_alive_[to_index(node)] = false;
}

/// By strategy of the neighbor: the only one that it allows. Absent if it allows several.
std::optional<std::vector<std::int32_t>> Reducer::following(std::int32_t node,
                                                            std::int32_t edge) const {
  const Edge& between = edges_[to_index(edge)];
  const std::int32_t leader = between.first == node ? between.second : between.first;
  const Side side(*this, leader, edge);
  const std::vector<std::int32_t> own = allowed(node);
  std::vector<std::int32_t> strategy(costs_[to_index(leader)].size(), own[0]);
  for (const std::int32_t k : allowed(leader)) {
    bool has_one = false;
    for (const std::int32_t each : own) {
      if (side(to_index(k), to_index(each)) >= kForbiddenSum) continue;
      if (has_one) return std::nullopt;
      has_one = true;
      strategy[to_index(k)] = each;
    }
  }
  return strategy;
}

bool Reducer::has_room(std::int32_t node, std::int32_t leader) const {
  const std::size_t more = memory_[to_index(node)].times.size() * costs_[to_index(leader)].size();
  return cells_ + more <= most_cells_;
}

bool Reducer::follow_any(std::int32_t node) {
  for (const auto& [neighbor, edge] : adjacent_[to_index(node)]) {
    if (!has_room(node, neighbor)) continue;
    if (auto strategy = following(node, edge)) {
      follow(node, edge, *std::move(strategy));
      return true;
    }
  }
  return false;
}

/// Makes `node` a part of the node at the other end, which allows it one strategy.
void Reducer::follow(std::int32_t node, std::int32_t edge, std::vector<std::int32_t> strategy) {
  const Edge& between = edges_[to_index(edge)];
  const std::int32_t leader = between.first == node ? between.second : between.first;
  std::vector<double>& costs = costs_[to_index(leader)];
  const Side side(*this, leader, edge);
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const std::size_t own = to_index(strategy[k]);
    costs[k] = clamped(costs[k] + costs_[to_index(node)][own] + side(k, own));
  }
  remove_edge(edge);
  MemoryChanges& moved = memory_[to_index(node)];
  MemoryChanges& sum = memory_[to_index(leader)];
  for (std::size_t i = 0; i < moved.times.size(); ++i) {
    const std::span<const double> differences = moved.at(i);
    sum.times.push_back(moved.times[i]);
    for (const std::int32_t own : strategy) sum.differences.push_back(differences[to_index(own)]);
  }
  cells_ += moved.times.size() * strategy.size();
  cells_ -= moved.differences.size();
  moved = {};
  while (!adjacent_[to_index(node)].empty()) {
    const auto [neighbor, other] = *adjacent_[to_index(node)].begin();
    const Side from(*this, node, other);
    std::vector<double> row;
    for (const std::int32_t own : strategy)
      for (std::size_t j = 0; j < costs_[to_index(neighbor)].size(); ++j)
        row.push_back(from(to_index(own), j));
    remove_edge(other);
    add_edge(leader, neighbor, row);
    wake(neighbor);
  }
  wake(leader);
  reduced_.choices.push_back({.node = node, .first = leader, .strategies = std::move(strategy)});
  is_alive_[to_index(node)] = false;
}

/// Removes a node with up to two neighbors whose strategy changes no memory: the best one for
/// every pair of their strategies.
bool Reducer::marginalize(std::int32_t node) {
  constexpr std::size_t kMostPairs = 1 << 14;
  const auto& adjacent = adjacent_[to_index(node)];
  if (!memory_[to_index(node)].times.empty() || adjacent.size() > 2) return false;
  const std::int32_t first = adjacent.empty() ? -1 : adjacent.begin()->first;
  const std::int32_t second = adjacent.size() < 2 ? -1 : adjacent.rbegin()->first;
  const std::size_t rows = first < 0 ? 1 : costs_[to_index(first)].size();
  const std::size_t columns = second < 0 ? 1 : costs_[to_index(second)].size();
  if (rows * columns > kMostPairs) return false;
  ReducedSharding::Choice choice{
      .node = node, .first = first, .second = second, .columns = columns, .strategies = {}};
  std::vector<double> least;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      least.push_back(4 * kForbiddenSum);
      choice.strategies.push_back(0);
      for (const std::int32_t k : allowed(node)) {
        double sum = costs_[to_index(node)][to_index(k)];
        if (first >= 0) sum += Side(*this, node, adjacent.begin()->second)(to_index(k), i);
        if (second >= 0) sum += Side(*this, node, adjacent.rbegin()->second)(to_index(k), j);
        if (sum >= least.back()) continue;
        least.back() = sum;
        choice.strategies.back() = k;
      }
      least.back() = clamped(least.back());
    }
  while (!adjacent.empty()) remove_edge(adjacent.begin()->second);
  if (first < 0) reduced_.constant += least[0];
  if (first >= 0 && second < 0)
    for (std::size_t k = 0; k < rows; ++k)
      costs_[to_index(first)][k] = clamped(costs_[to_index(first)][k] + least[k]);
  if (second >= 0) add_edge(first, second, least), wake(second);
  if (first >= 0) wake(first);
  reduced_.choices.push_back(std::move(choice));
  is_alive_[to_index(node)] = false;
  return true;
}

/// False: the problem is impossible.
bool Reducer::visit(std::int32_t node) {
  if (!prune(node)) return false;
  drop_constant_changes(node);
  remove_dominated(node);
  if (const std::vector<std::int32_t> left = allowed(node); left.size() == 1)
    fix(node, left[0]);
  else if (!follow_any(node))
    marginalize(node);
  return true;
}

/// By time: what is left for the nodes.
std::vector<double> Reducer::left() const {
  std::vector<double> left = reduced_.memory.left;
  double fixed = 0;
  for (std::size_t t = 0; t < left.size(); ++t) left[t] -= fixed += fixed_[t];
  return left;
}

/// Removes strategies that exceed the limit whatever the others choose. False: nothing fits.
bool Reducer::remove_exceeding() {
  LeastMemory least(left());
  for (std::size_t v = 0; v < memory_.size(); ++v)
    if (!memory_[v].times.empty()) least.add(memory_[v], allowed(static_cast<std::int32_t>(v)));
  if (!least.finish()) return false;
  for (std::size_t v = 0; v < memory_.size(); ++v) {
    if (memory_[v].times.empty()) continue;
    const auto node = static_cast<std::int32_t>(v);
    const std::vector<std::int32_t> removed = least.exceeding(memory_[v], allowed(node));
    for (const std::int32_t k : removed) costs_[v][to_index(k)] = kForbiddenSum;
    if (!removed.empty()) wake(node), wake_neighbors(node);
  }
  return true;
}

ReducedSharding Reducer::run() {
  do {
    while (!waiting_.empty()) {
      const std::int32_t node = waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      waits_with_[to_index(node)] = SIZE_MAX;
      if (is_alive_[to_index(node)] && !visit(node)) return impossible();
    }
    if (!remove_exceeding()) return impossible();
  } while (!waiting_.empty());
  return result();
}

ReducedSharding Reducer::impossible() {
  reduced_.is_impossible = true;
  return std::move(reduced_);
}

ReducedSharding Reducer::result() {
  std::vector<std::int32_t> number(costs_.size(), -1);
  MemoryProfile& memory = reduced_.memory;
  memory.left = left();
  for (std::size_t v = 0; v < costs_.size(); ++v) {
    if (!is_alive_[v]) continue;
    const auto node = static_cast<std::int32_t>(v);
    number[v] = static_cast<std::int32_t>(reduced_.kept.size());
    reduced_.kept.push_back(node);
    const std::vector<std::int32_t>& domain = reduced_.domain.emplace_back(allowed(node));
    std::vector<double>& costs = reduced_.costs.emplace_back();
    for (const std::int32_t k : domain) costs.push_back(costs_[v][to_index(k)]);
    MemoryChanges& changes = memory.nodes.emplace_back();
    changes.times = memory_[v].times;
    for (std::size_t i = 0; i < changes.times.size(); ++i)
      for (const std::int32_t k : domain)
        changes.differences.push_back(memory_[v].at(i)[to_index(k)]);
  }
  memory = binding_times(memory);
  for (std::size_t v = 0; v < costs_.size(); ++v)
    for (const auto& [neighbor, edge] : adjacent_[v]) {
      if (to_index(neighbor) < v) continue;
      Edge left{number[v], number[to_index(neighbor)], {}};
      const Side side(*this, static_cast<std::int32_t>(v), edge);
      for (const std::int32_t k : reduced_.domain[to_index(left.first)])
        for (const std::int32_t j : reduced_.domain[to_index(left.second)])
          left.costs.push_back(side(to_index(k), to_index(j)));
      reduced_.edges.push_back(std::move(left));
    }
  return std::move(reduced_);
}

}  // namespace

ReducedSharding unreduced(const ShardingProblem& problem) {
  ReducedSharding same;
  same.memory = memory_profile(problem);
  for (const ShardingNode& node : problem.nodes) same.costs.push_back(clamped(node.costs));
  for (const ShardingEdge& edge : problem.edges)
    same.edges.push_back({edge.first, edge.second, clamped(edge.costs)});
  return same;
}

ReducedSharding reduce_sharding(const ReducedSharding& problem) { return Reducer(problem).run(); }

Strategies expand(const ReducedSharding& reduced, const Strategies& chosen) {
  Strategies strategies(reduced.kept.size() + reduced.choices.size(), 0);
  for (std::size_t v = 0; v < chosen.size(); ++v)
    strategies[to_index(reduced.kept[v])] = reduced.domain[v][to_index(chosen[v])];
  for (auto it = reduced.choices.rbegin(); it != reduced.choices.rend(); ++it) {
    const auto strategy = [&](std::int32_t node) {
      return node < 0 ? std::size_t{0} : to_index(strategies[to_index(node)]);
    };
    strategies[to_index(it->node)] =
        it->strategies[strategy(it->first) * it->columns + strategy(it->second)];
  }
  return strategies;
}

}  // namespace meshwright
