#include "planner/partition/shard_graph.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"
#include "planner/partition/kernel_graph_partition.hpp"
#include "planner/partition/kernel_part.hpp"
#include "planner/sharding/sharding_search.hpp"

namespace meshwright {
namespace {

/// Of search_sharding(): graphs are chains of layers, for which few are enough.
constexpr std::int64_t kSearchSteps = 200;
/// A hundred times the time of all units on one device.
constexpr std::int64_t kMostCost = 1'000'000'000'000;
/// Long enough for the bandwidth of collectives at the end of a step.
constexpr Bytes kLargeBuffer(std::int64_t{1} << 30);

std::vector<std::int32_t> units_of_nodes(const KernelGraph& graph) {
  std::vector<std::int32_t> unit_of(graph.nodes.size());
  for (std::size_t u = 0; u < graph.units.size(); ++u)
    for (const std::int32_t node : graph.units[u].nodes)
      unit_of[to_index(node)] = static_cast<std::int32_t>(u);
  return unit_of;
}

const KernelSharding* sharding_of(const KernelGraph& graph, std::size_t unit,
                                  std::int32_t strategy) {
  return strategy == kReplicated ? nullptr : &graph.units[unit].shardings[to_index(strategy)];
}

class GraphSharding {
 public:
  GraphSharding(const KernelGraph& graph, const CostModel& cost, const ShardingRequest& request)
      : graph_(graph),
        cost_(cost),
        request_(request),
        group_(request.group),
        unit_of_(units_of_nodes(graph)) {
    MW_CHECK(!graph.units.empty());
  }

  ShardedGraph run() {
    list_strategies();
    list_edges();
    for (std::size_t u = 0; u < graph_.units.size(); ++u) alone_ += time_of_unit(u, kReplicated);
    alone_ = std::max(alone_, Seconds(1e-12));
    const ShardingProblem problem = pose();
    const ShardingResult result = search_sharding(problem, {.steps = kSearchSteps});
    MW_CHECK(result.best.has_value());
    chosen_.resize(graph_.units.size());
    for (std::size_t u = 0; u < chosen_.size(); ++u)
      chosen_[u] = strategies_[u][to_index(result.best->strategies[u])];
    return {.graph = local_graph(), .sharding = chosen_, .is_optimal = result.is_optimal()};
  }

  KernelGraph apply(const std::vector<std::int32_t>& sharding) {
    chosen_ = sharding;
    list_edges();
    return local_graph();
  }

 private:
  /// A tensor between two units, once for each pair.
  struct UnitEdge {
    std::int32_t source = 0, target = 0, tensor = 0;
    Bytes bytes;
    bool has_gradient = true;
    auto key() const { return std::pair(source, target); }
  };

  const KernelSharding* sharding(std::size_t unit, std::int32_t strategy) const {
    return sharding_of(graph_, unit, strategy);
  }
  const KernelSharding* chosen(std::size_t unit) const { return sharding(unit, chosen_[unit]); }

  // ---- the problem ----

  bool has_parameters(std::size_t u) const {
    return std::ranges::any_of(graph_.units[u].nodes, [&](std::int32_t node) {
      const KernelGraphNode& n = graph_.nodes[to_index(node)];
      return n.parameters > 0 || !n.tied.empty();
    });
  }

  void list_strategies() {
    constexpr double kMost = 0.5;
    for (std::size_t u = 0; u < graph_.units.size(); ++u) {
      std::vector<std::int32_t> divided, others{kReplicated};
      for (std::size_t s = 0; s < graph_.units[u].shardings.size(); ++s) {
        const KernelSharding& each = graph_.units[u].shardings[s];
        if (!can_be_sharded(each, group_.devices)) continue;
        (each.parameters > kMost ? divided : others).push_back(static_cast<std::int32_t>(s));
      }
      if (request_.shards_parameters && has_parameters(u) && !divided.empty()) others.clear();
      others.insert(others.end(), divided.begin(), divided.end());
      strategies_.push_back(std::move(others));
    }
  }

  void list_edges() {
    std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> seen;
    for (const KernelGraphEdge& edge : graph_.edges) {
      const std::int32_t source = unit_of_[to_index(edge.source)],
                         target = unit_of_[to_index(edge.target)];
      if (source != target && seen.emplace(source, target, edge.tensor).second)
        edges_.push_back({source, target, edge.tensor, edge.bytes, edge.has_gradient});
    }
    std::ranges::stable_sort(edges_, {}, &UnitEdge::key);
  }

  /// In parts of the time of one device, so that sums are exact; far more than all of it is as bad
  /// as any time.
  std::int64_t cost_of(Seconds time) const {
    constexpr double kParts = 1e10;
    return std::llround(std::min(static_cast<double>(kMostCost), kParts * ratio(time, alone_)));
  }

  Seconds time_of(const LayoutChange& change) const {
    return meshwright::time_of(change.forward, cost_) + meshwright::time_of(change.backward, cost_);
  }

  /// Beside the kernels of the unit that reads it.
  Seconds exposed_time(const LayoutChange& change, std::size_t target, std::int32_t to) const {
    Seconds time = meshwright::time_of(change.forward, cost_);
    std::vector<Kernel> kernels;
    if (const KernelGraphNode* node = product_node(target); node != nullptr && overlaps_)
      kernels = kernels_of(target, to, node->backward);
    for (const Collective& each : change.backward) {
      const Seconds alone = cost_.time_of(each);
      const std::size_t beside = each.overlap.kernels < 0 ? 0 : 1;
      time += each.overlap.kernels == 0
                  ? alone
                  : std::max(Seconds(), alone - cost_.time_of(kernels[beside]));
    }
    return time;
  }

  ShardingProblem pose() const {
    ShardingProblem problem;
    const auto count = static_cast<std::int64_t>(graph_.units.size());
    for (std::size_t u = 0; u < graph_.units.size(); ++u) {
      ShardingNode node{.begin = 0, .end = count, .costs = {}, .usages = {}};
      for (const std::int32_t strategy : strategies_[u]) {
        node.costs.push_back(cost_of(time_of_unit(u, strategy)));
        node.usages.push_back(0);
      }
      problem.nodes.push_back(std::move(node));
    }
    for (std::size_t first = 0; first < edges_.size();) {
      std::size_t last = first;
      while (last < edges_.size() && edges_[last].key() == edges_[first].key()) ++last;
      problem.edges.push_back(edge_costs({edges_.begin() + static_cast<std::ptrdiff_t>(first),
                                          edges_.begin() + static_cast<std::ptrdiff_t>(last)}));
      first = last;
    }
    add_ties(problem);
    return problem;
  }

  ShardingEdge edge_costs(const std::vector<UnitEdge>& edges) const {
    const auto source = to_index(edges.front().source), target = to_index(edges.front().target);
    ShardingEdge made{.first = edges.front().source, .second = edges.front().target, .costs = {}};
    for (const std::int32_t from : strategies_[source])
      for (const std::int32_t to : strategies_[target]) {
        Seconds time;
        for (const UnitEdge& edge : edges)
          time += exposed_time(change_of(edge, from, to), target, to);
        made.costs.push_back(cost_of(time));
      }
    return made;
  }

  /// Tied parameters are divided by both of their readers, or by none, if that is possible.
  void add_ties(ShardingProblem& problem) const {
    std::set<std::pair<std::int32_t, std::int32_t>> tied;
    for (std::size_t v = 0; v < graph_.nodes.size(); ++v)
      for (const TiedParameters& each : graph_.nodes[v].tied) {
        const std::int32_t owner = unit_of_[to_index(each.owner)], reader = unit_of_[v];
        if (owner != reader) tied.emplace(owner, reader);
      }
    constexpr double kHalf = 0.5;
    const auto divides = [&](std::int32_t unit, std::int32_t strategy) {
      const KernelSharding* found = sharding(to_index(unit), strategy);
      return found != nullptr && found->parameters > kHalf;
    };
    for (const auto& [owner, reader] : tied) {
      ShardingEdge edge{.first = owner, .second = reader, .costs = {}};
      for (const std::int32_t a : strategies_[to_index(owner)])
        for (const std::int32_t b : strategies_[to_index(reader)])
          edge.costs.push_back(divides(owner, a) == divides(reader, b) ? 0 : kMostCost);
      problem.edges.push_back(std::move(edge));
    }
  }

  // ---- layouts ----

  /// Of a product with a matrix on the right: after the gradient of the left one. It needs its
  /// input again, of which only a part is kept.
  bool has_weight_gradient(std::size_t unit) const {
    const KernelGraphNode* node = product_node(unit);
    return node != nullptr && node->backward.size() >= 2 &&
           node->backward[0].phase == Phase::kBackwardInput &&
           node->backward[1].phase == Phase::kBackwardWeight && is_product(node->backward[1]);
  }

  LayoutChange change_of(const UnitEdge& edge, std::int32_t from, std::int32_t to) const {
    const auto source = to_index(edge.source), target = to_index(edge.target);
    return change_layout({.from = output_layout(sharding(source, from), edge.tensor),
                          .to = input_layout(sharding(target, to), edge.tensor),
                          .bytes = edge.bytes,
                          .has_gradient = edge.has_gradient,
                          .has_weight_gradient = has_weight_gradient(target),
                          .overlaps = overlaps_},
                         group_);
  }

  // ---- units ----

  /// The node with the kernels of all nodes.
  std::optional<std::int32_t> node_with_kernels(std::size_t unit) const {
    for (const std::int32_t index : graph_.units[unit].nodes) {
      const KernelGraphNode& node = graph_.nodes[to_index(index)];
      if (!node.forward.empty() || !node.backward.empty()) return index;
    }
    return std::nullopt;
  }
  /// The node whose only kernel is a product.
  const KernelGraphNode* product_node(std::size_t unit) const {
    for (const std::int32_t index : graph_.units[unit].nodes) {
      const KernelGraphNode& node = graph_.nodes[to_index(index)];
      if (node.forward.size() == 1 && is_product(node.forward[0])) return &node;
    }
    return nullptr;
  }
  const Kernel* product_of(std::size_t unit) const {
    const KernelGraphNode* node = product_node(unit);
    return node == nullptr ? nullptr : &node->forward[0];
  }

  std::vector<Kernel> kernels_of(std::size_t unit, std::int32_t strategy,
                                 const std::vector<Kernel>& kernels) const {
    const KernelSharding* found = sharding(unit, strategy);
    if (found == nullptr) return kernels;
    const DevicePart part = part_of_device(*found, group_.devices);
    std::vector<Kernel> parts;
    parts.reserve(kernels.size());
    for (const Kernel& kernel : kernels)
      parts.push_back(part_of_kernel(kernel, product_of(unit), *found, part));
    return parts;
  }

  /// What the unit itself adds up: statistics, and results that no other unit reads.
  LayoutChange sums_of(std::size_t unit, std::int32_t strategy) const {
    LayoutChange change;
    const KernelSharding* found = sharding(unit, strategy);
    if (found == nullptr) return change;
    constexpr int kForwardSums = 2;  // the maximum, and the sum of exponentials
    if (found->statistics > Bytes(0)) {
      const Collective sum =
          tensor_collective(CollectiveKind::kAllReduce, found->statistics, group_);
      change.forward.assign(kForwardSums, sum);
      change.backward.push_back(sum);
    }
    if (found->gives_sums && graph_.units[unit].results > Bytes(0))
      change.forward.push_back(
          tensor_collective(CollectiveKind::kAllReduce, graph_.units[unit].results, group_));
    return change;
  }

  std::int64_t summed_parameters(std::size_t unit, std::int32_t strategy,
                                 const KernelGraphNode& node) const {
    const KernelSharding* found = sharding(unit, strategy);
    if (found == nullptr || found->gives_sums) return 0;
    return std::llround((1 - found->parameters) * static_cast<double>(node.parameters));
  }

  Seconds time_of_unit(std::size_t unit, std::int32_t strategy) const {
    Seconds time;
    std::int64_t summed = 0;
    for (const std::int32_t index : graph_.units[unit].nodes) {
      const KernelGraphNode& node = graph_.nodes[to_index(index)];
      for (const std::vector<Kernel>* kernels : {&node.forward, &node.backward})
        time += meshwright::time_of(kernels_of(unit, strategy, *kernels), cost_);
      summed += summed_parameters(unit, strategy, node);
    }
    time += time_of(sums_of(unit, strategy));
    if (summed > 0) {
      const Seconds large =
          cost_.time_of(tensor_collective(CollectiveKind::kAllReduce, kLargeBuffer, group_));
      time += static_cast<double>(summed * kFloat32Bytes) /
              static_cast<double>(kLargeBuffer.value) / request_.microbatches * large;
    }
    return time;
  }

  // ---- the result ----

  KernelGraph local_graph() const {
    KernelGraph local = graph_;
    local.units.clear();
    for (std::size_t u = 0; u < graph_.units.size(); ++u) {
      for (const std::int32_t index : graph_.units[u].nodes)
        shard_node(u, graph_.nodes[to_index(index)], local.nodes[to_index(index)]);
      if (const auto index = node_with_kernels(u)) {
        const LayoutChange sums = sums_of(u, chosen_[u]);
        local.nodes[to_index(*index)].forward_collectives = sums.forward;
        local.nodes[to_index(*index)].backward_collectives = sums.backward;
      }
    }
    shard_outputs(local);
    add_changes(local);
    return local;
  }

  void shard_node(std::size_t u, const KernelGraphNode& whole, KernelGraphNode& node) const {
    const KernelSharding* found = chosen(u);
    if (found == nullptr) return;
    const DevicePart part = part_of_device(*found, group_.devices);
    node.forward = kernels_of(u, chosen_[u], whole.forward);
    node.backward = kernels_of(u, chosen_[u], whole.backward);
    const auto held = [&](std::int64_t count) {
      const double of_one = found->parameters * part.value() + (1 - found->parameters);
      return static_cast<std::int64_t>(std::ceil(of_one * static_cast<double>(count)));
    };
    node.parameters = held(whole.parameters);
    for (TiedParameters& tied : node.tied) tied.count = held(tied.count);
    node.summed_parameters = summed_parameters(u, chosen_[u], whole);
  }

  /// Outputs are kept as their readers need them: sums in parts, if all of them read parts.
  void shard_outputs(KernelGraph& local) const {
    std::vector<bool> is_read_whole(graph_.units.size(), false);
    for (const UnitEdge& edge : edges_)
      if (input_layout(chosen(to_index(edge.target)), edge.tensor).kind != LayoutKind::kShard)
        is_read_whole[to_index(edge.source)] = true;
    for (std::size_t v = 0; v < local.nodes.size(); ++v) {
      const auto u = to_index(unit_of_[v]);
      const KernelSharding* found = chosen(u);
      if (found == nullptr || (found->gives_sums && is_read_whole[u])) continue;
      const DevicePart part = part_of_device(*found, group_.devices);
      local.nodes[v].saved = part.of(graph_.nodes[v].saved);
      if (!found->gives_sums) local.nodes[v].output = part.of(graph_.nodes[v].output);
    }
    for (KernelGraphEdge& edge : local.edges) {
      const auto u = to_index(unit_of_[to_index(edge.source)]);
      const KernelSharding* found = chosen(u);
      if (found != nullptr && !found->gives_sums)
        edge.bytes = part_of_device(*found, group_.devices).of(edge.bytes);
    }
  }

  /// A tensor is changed before its first reader in that layout, and its gradient after it.
  void add_changes(KernelGraph& local) const {
    std::set<std::pair<std::int32_t, TensorLayout>> changed;
    std::vector<KernelGraphEdge> edges = graph_.edges;
    std::ranges::stable_sort(edges, {}, &KernelGraphEdge::target);
    for (const KernelGraphEdge& edge : edges) {
      const std::int32_t source = unit_of_[to_index(edge.source)],
                         target = unit_of_[to_index(edge.target)];
      if (source == target) continue;
      const TensorLayout to = input_layout(chosen(to_index(target)), edge.tensor);
      if (!changed.emplace(edge.tensor, to).second) continue;
      LayoutChange change = change_of({source, target, edge.tensor, edge.bytes, edge.has_gradient},
                                      chosen_[to_index(source)], chosen_[to_index(target)]);
      KernelGraphNode& node =
          local.nodes[to_index(node_with_kernels(to_index(target)).value_or(edge.target))];
      node.forward_collectives.insert(node.forward_collectives.end(), change.forward.begin(),
                                      change.forward.end());
      if (!node.backward_collectives.empty())  // others run beside the kernels
        for (Collective& each : change.backward) each.overlap = {};
      node.backward_collectives.insert(node.backward_collectives.end(), change.backward.begin(),
                                       change.backward.end());
    }
  }

  const KernelGraph& graph_;
  const CostModel& cost_;
  const ShardingRequest& request_;
  const TensorGroup& group_;
  bool overlaps_ = cost_.memory().overlaps_gradient_reduction;
  std::vector<std::int32_t> unit_of_;                  ///< by node
  std::vector<std::vector<std::int32_t>> strategies_;  ///< by unit: kReplicated, or a sharding
  std::vector<UnitEdge> edges_;                        ///< sorted by their units
  Seconds alone_;                                      ///< of all units on one device
  std::vector<std::int32_t> chosen_;                   ///< by unit
};

}  // namespace

std::vector<std::string> placements_of(const KernelGraph& graph,
                                       const std::vector<std::int32_t>& sharding) {
  std::vector<std::string> placements(graph.nodes.size());
  const std::vector<std::int32_t> unit_of = units_of_nodes(graph);
  for (const KernelGraphEdge& edge : graph.edges) {
    const std::int32_t source = unit_of[to_index(edge.source)];
    if (source == unit_of[to_index(edge.target)]) continue;
    placements[to_index(edge.source)] = to_text(output_layout(
        sharding_of(graph, to_index(source), sharding[to_index(source)]), edge.tensor));
  }
  return placements;
}

KernelGraph apply_sharding(const KernelGraph& graph, const CostModel& cost,
                           const ShardingRequest& request,
                           const std::vector<std::int32_t>& sharding) {
  return GraphSharding(graph, cost, request).apply(sharding);
}

ShardedGraph shard_graph(const KernelGraph& graph, const CostModel& cost,
                         const ShardingRequest& request) {
  return GraphSharding(graph, cost, request).run();
}

}  // namespace meshwright
