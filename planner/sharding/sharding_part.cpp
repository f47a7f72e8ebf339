#include "planner/sharding/sharding_part.hpp"

#include <algorithm>
#include <utility>

#include "core/base/indices.hpp"

namespace meshwright {
namespace {

/// Memory of the nodes, beside that of the others, whose most counts between two changes.
MemoryProfile memory_of(const MemoryProfile& memory, const Strategies& chosen,
                        std::span<const std::int32_t> nodes) {
  MemoryProfile part;
  const std::vector<double> used = usages_of(memory, chosen);
  std::vector<double> own(used.size(), 0);
  std::vector<std::int32_t> place(used.size(), 0);  ///< of the times of changes: 1
  for (const std::int32_t node : nodes) {
    const MemoryChanges& changes = part.nodes.emplace_back(memory.nodes[to_index(node)]);
    for (std::size_t i = 0; i < changes.times.size(); ++i) {
      own[to_index(changes.times[i])] += changes.at(i)[to_index(chosen[to_index(node)])];
      place[to_index(changes.times[i])] = 1;
    }
  }
  double sum = 0;
  for (std::size_t t = 0; t < used.size(); ++t) {
    const double left = memory.left[t] - used[t] + (sum += own[t]);
    if (t == 0 || place[t] == 1) {
      part.left.push_back(left);
      part.multipliers.push_back(0);
    }
    part.left.back() = std::min(part.left.back(), left);
    part.multipliers.back() += memory.multipliers[t];
    place[t] = static_cast<std::int32_t>(part.left.size()) - 1;
  }
  for (MemoryChanges& changes : part.nodes)
    for (std::int32_t& time : changes.times) time = place[to_index(time)];
  return part;
}

/// Costs of a node beside the fixed ones, and its edges to later nodes of the part.
void add_costs(const StrategyGraph& graph, const Strategies& chosen, std::size_t node,
               const std::vector<std::int32_t>& number, ReducedSharding& part) {
  std::vector<double> costs(graph.costs(node).begin(), graph.costs(node).end());
  for (const StrategyGraph::Neighbor& to : graph.neighbors(node)) {
    const std::int32_t other = number[to_index(to.node)];
    if (other < 0) {
      const std::int32_t strategy = chosen[to_index(to.node)];
      for (std::size_t k = 0; k < costs.size(); ++k)
        costs[k] = std::min(kForbiddenSum, costs[k] + graph.row(to, k)[to_index(strategy)]);
    } else if (to.is_first) {
      ReducedSharding::Edge edge{number[node], other, {}};
      for (std::size_t k = 0; k < costs.size(); ++k) {
        const std::span<const double> row = graph.row(to, k);
        edge.costs.insert(edge.costs.end(), row.begin(), row.end());
      }
      part.edges.push_back(std::move(edge));
    }
  }
  part.costs.push_back(std::move(costs));
}

/// Nodes and their neighbors, breadth first, up to a number.
class Spread {
 public:
  Spread(const StrategyGraph& graph, std::size_t most)
      : graph_(graph), most_(std::min(most, graph.node_count())), is_taken_(graph.node_count()) {}

  bool is_full() const { return nodes_.size() == most_; }
  std::size_t size() const { return nodes_.size(); }
  void take(std::int32_t node) {
    if (is_full() || is_taken_[to_index(node)]) return;
    is_taken_[to_index(node)] = true;
    nodes_.push_back(node);
  }
  void spread() {
    for (; next_ < nodes_.size() && !is_full(); ++next_)
      for (const StrategyGraph::Neighbor& to : graph_.neighbors(to_index(nodes_[next_])))
        take(to.node);
  }
  std::vector<std::int32_t> nodes() && { return std::move(nodes_); }

 private:
  const StrategyGraph& graph_;
  std::size_t most_, next_ = 0;
  std::vector<bool> is_taken_;
  std::vector<std::int32_t> nodes_;
};

/// Whose strategies change the memory at the time.
std::vector<std::int32_t> users_at(const MemoryProfile& memory, std::int32_t time) {
  std::vector<std::int32_t> users;
  for (std::size_t v = 0; v < memory.nodes.size(); ++v) {
    const std::vector<std::int32_t>& times = memory.nodes[v].times;
    if (times.empty() || times.front() > time) continue;
    if (times.size() == 1 || times.back() > time) users.push_back(static_cast<std::int32_t>(v));
  }
  return users;
}

}  // namespace

std::vector<std::int32_t> choose_part(const StrategyGraph& graph, const MemoryProfile& memory,
                                      std::size_t size, Chance& random) {
  Spread part(graph, size);
  if (memory.time_count() > 0 && random.next() % 2 == 0) {
    std::vector<std::int32_t> users =
        users_at(memory, static_cast<std::int32_t>(random.next() % memory.time_count()));
    for (std::size_t left = users.size(); left > 0 && part.size() < size / 2; --left) {
      std::swap(users[left - 1], users[random.next() % left]);
      part.take(users[left - 1]);
    }
    part.spread();
  }
  while (!part.is_full()) {
    part.take(static_cast<std::int32_t>(random.next() % graph.node_count()));
    part.spread();
  }
  return std::move(part).nodes();
}

ReducedSharding part_of(const StrategyGraph& graph, const MemoryProfile& memory,
                        const Strategies& chosen, std::span<const std::int32_t> nodes) {
  ReducedSharding part;
  std::vector<std::int32_t> number(graph.node_count(), -1);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    number[to_index(nodes[i])] = static_cast<std::int32_t>(i);
  for (const std::int32_t node : nodes) add_costs(graph, chosen, to_index(node), number, part);
  part.memory = memory_of(memory, chosen, nodes);
  return part;
}

}  // namespace meshwright
