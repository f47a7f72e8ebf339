#include "planner/search/node_selection.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "planner/search/candidate_costs.hpp"
#include "planner/search/unequal_shares.hpp"
#include "simulator/cost/mixed_cost_model.hpp"

namespace meshwright {
namespace {

using Nodes = std::vector<NodeGroup>;

int devices_in(const Cluster& cluster, const NodeGroup& group) {
  return cluster.nodes.at(group.node).device_count;
}

/// One group for every type of node, in the order of the cluster.
Nodes types_of(const Cluster& cluster) {
  Nodes types;
  for (const NodeGroup& group : cluster.groups) {
    const auto known = std::ranges::find(types, group.node, &NodeGroup::node);
    if (known == types.end())
      types.push_back(group);
    else
      known->count += group.count;
  }
  return types;
}

/// As many nodes of every type as the devices that are left allow, in the order of `types`.
Nodes filled(const Cluster& cluster, const Nodes& types, int gpus) {
  Nodes nodes;
  for (NodeGroup group : types) {
    const int devices = devices_in(cluster, group);
    group.count = std::min(group.count, gpus / devices);
    if (group.count == 0) return {};
    gpus -= group.count * devices;
    nodes.push_back(group);
  }
  return nodes;
}

Nodes rounded_down(Nodes nodes) {
  for (NodeGroup& group : nodes)
    group.count = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.count)));
  return nodes;
}

/// Types beyond these are searched in the order of the cluster only.
constexpr std::size_t kMostTypesInEveryOrder = 3;

class Selections {
 public:
  Selections(const Cluster& cluster, int gpus) : cluster_(cluster), gpus_(gpus) {}

  /// Every non-empty subset of the types.
  std::vector<Nodes> run() {
    const Nodes types = types_of(cluster_);
    if (types.size() > kMostTypesInEveryOrder) {
      for (const NodeGroup& type : types) add_alone(type);
      add(filled(cluster_, types, gpus_));
      return std::move(found_);
    }
    for (unsigned set = 1; set < 1U << types.size(); ++set) {
      std::vector<std::size_t> chosen;
      for (std::size_t type = 0; type < types.size(); ++type)
        if ((set >> type & 1U) != 0) chosen.push_back(type);
      if (chosen.size() == 1)
        add_alone(types[chosen.front()]);
      else
        add_orders(types, chosen);
    }
    return std::move(found_);
  }

 private:
  /// A part of one node is enough.
  void add_alone(NodeGroup type) {
    type.count = std::min(type.count, std::max(1, gpus_ / devices_in(cluster_, type)));
    add({type});
  }

  /// Every order in which types are filled, and in each every order of the pipeline.
  void add_orders(const Nodes& types, std::vector<std::size_t> chosen) {
    do {
      Nodes in_order;
      for (const std::size_t type : chosen) in_order.push_back(types[type]);
      Nodes nodes = filled(cluster_, in_order, gpus_);
      std::ranges::sort(nodes, {}, &NodeGroup::node);
      do add(nodes);
      while (std::ranges::next_permutation(nodes, {}, &NodeGroup::node).found);
    } while (std::ranges::next_permutation(chosen).found);
  }

  void add(const Nodes& nodes) {
    if (nodes.empty()) return;
    for (const Nodes& variant : {nodes, rounded_down(nodes)})
      if (std::ranges::find(found_, variant) == found_.end()) found_.push_back(variant);
  }

  const Cluster& cluster_;
  int gpus_;
  std::vector<Nodes> found_;
};

/// The lower bound that the certificate of a search implies; 0 if it has found nothing and is not
/// complete, nothing if its space has no plan.
std::optional<Ticks> bound_of(const SearchResult& result) {
  const SearchCertificate& certificate = result.certificate;
  if (result.plans.empty())
    return certificate.proved_optimal ? std::nullopt : std::optional(Ticks());
  const auto best = static_cast<double>(result.plans.front().evaluation.step_time.value);
  return Ticks(static_cast<std::int64_t>(best * (1 - certificate.gap)));
}

/// The rows of all selections, and the best plan of each set of nodes.
class MergedRows {
 public:
  explicit MergedRows(int top) : top_(static_cast<std::size_t>(top)) {}

  bool empty() const { return merged_.plans.empty(); }
  /// The step of the last row, if the table is full.
  std::optional<Ticks> last_step() const {
    if (merged_.plans.size() < top_) return std::nullopt;
    return merged_.plans[top_ - 1].evaluation.step_time;
  }
  /// The best plan on these nodes in other orders. Null: none was searched.
  const BestOfNodes* best_on(const Nodes& nodes) const {
    const auto known = std::ranges::find_if(merged_.by_nodes, [&](const BestOfNodes& best) {
      return counts_of(best.nodes) == counts_of(nodes);
    });
    return known == merged_.by_nodes.end() ? nullptr : &*known;
  }

  void add(const Nodes& nodes, SearchResult result) {
    proved_ = proved_ && result.certificate.proved_optimal;
    if (const auto bound = bound_of(result); bound && (!bound_ || *bound < *bound_)) bound_ = bound;
    for (RankedPlan& row : result.plans) row.nodes = nodes;
    note_best(nodes, result);
    for (RankedPlan& row : result.plans) offer(std::move(row));
    std::ranges::stable_sort(merged_.plans, {}, step_of);
    if (result.infeasible && !merged_.infeasible) merged_.infeasible = std::move(result.infeasible);
  }
  void count(const SearchCertificate& certificate) {
    SearchCertificate& all = merged_.certificate;
    all.candidates += certificate.candidates;
    all.simulated += certificate.simulated;
    for (std::size_t i = 0; i < all.pruned.size(); ++i) all.pruned[i] += certificate.pruned[i];
  }

  SearchResult take() {
    if (merged_.plans.size() > top_) merged_.plans.resize(top_);
    SearchCertificate& all = merged_.certificate;
    all.proved_optimal = proved_;
    all.gap = proved_ ? 0 : 1;
    if (!proved_ || !merged_.plans.empty()) merged_.infeasible.reset();
    if (merged_.plans.empty()) return std::move(merged_);
    const Strategy& first = merged_.plans.front().plan.strategy;
    if (!first.batch_shares.empty()) all.refined_by = {change_to_shares(first)};
    const Ticks best = step_of(merged_.plans.front());
    if (!proved_) all.gap = bound_ && *bound_ < best ? ratio(best - *bound_, best) : 0;
    return std::move(merged_);
  }

 private:
  static Ticks step_of(const RankedPlan& row) { return row.evaluation.step_time; }
  /// By node type, so that orders do not matter.
  static std::map<std::string, int> counts_of(const Nodes& nodes) {
    std::map<std::string, int> counts;
    for (const NodeGroup& group : nodes) counts[group.node] += group.count;
    return counts;
  }

  void note_best(const Nodes& nodes, const SearchResult& result) {
    const BestOfNodes* known = best_on(nodes);
    if (known == nullptr) merged_.by_nodes.push_back({.nodes = nodes, .best = std::nullopt});
    const std::size_t index = known == nullptr
                                  ? merged_.by_nodes.size() - 1
                                  : static_cast<std::size_t>(known - merged_.by_nodes.data());
    BestOfNodes& best = merged_.by_nodes[index];
    if (result.certificate.gap > 0) best.proved_optimal = false;
    if (result.plans.empty()) return;
    const RankedPlan& first = result.plans.front();
    if (best.best && step_of(first) >= step_of(*best.best)) return;
    best.nodes = nodes;
    best.best = first;
  }

  static ParallelDegrees sizes_of(const RankedPlan& row) {
    ParallelDegrees degrees = row.plan.strategy.degrees;
    degrees.chunks = 1;
    return degrees;
  }

  /// Plans of equal sizes on the same nodes in other orders have one row.
  void offer(RankedPlan row) {
    const auto known = std::ranges::find_if(merged_.plans, [&](const RankedPlan& other) {
      return sizes_of(other) == sizes_of(row) && counts_of(other.nodes) == counts_of(row.nodes) &&
             other.nodes != row.nodes;
    });
    if (known == merged_.plans.end())
      merged_.plans.push_back(std::move(row));
    else if (step_of(row) < step_of(*known))
      *known = std::move(row);
  }

  std::size_t top_;
  SearchResult merged_;
  bool proved_ = true;
  std::optional<Ticks> bound_;
};

/// One search per selection. Those after the first are limited to plans that enter the table,
/// except for the best plan of every set of nodes.
class SelectionSearch {
 public:
  SelectionSearch(const SearchOptions& options,
                  std::function<SearchResult(const Nodes&, const SearchOptions&)> search)
      : options_(options), search_(std::move(search)), rows_(std::max(1, options.top)) {
    options_.selects_nodes = false;
  }

  void run(const Nodes& nodes) {
    SearchOptions options = options_;
    const BestOfNodes* known = rows_.best_on(nodes);
    const bool is_new_set = known == nullptr && !rows_.empty();
    if (is_new_set)
      options.top = 1;
    else if (known != nullptr && known->best && rows_.last_step())
      options.longest_step = std::max(*rows_.last_step(), known->best->evaluation.step_time);
    SearchResult result = search_(nodes, options);
    rows_.count(result.certificate);
    const bool may_have_more_rows =
        is_new_set && options_.top > 1 && !result.plans.empty() &&
        (!rows_.last_step() || result.plans.front().evaluation.step_time < *rows_.last_step());
    if (may_have_more_rows) {
      options.top = options_.top;
      options.longest_step = rows_.last_step();
      SearchResult more = search_(nodes, options);
      if (!more.plans.empty()) result = std::move(more);
    }
    rows_.add(nodes, std::move(result));
  }

  SearchResult take() { return rows_.take(); }

 private:
  SearchOptions options_;
  std::function<SearchResult(const Nodes&, const SearchOptions&)> search_;
  MergedRows rows_;
};

}  // namespace

Cluster with_nodes(const Cluster& cluster, const std::vector<NodeGroup>& nodes) {
  Cluster part = cluster;
  part.groups = nodes;
  return part;
}

Cluster nodes_of_row(const Cluster& cluster, const RankedPlan& row) {
  return row.nodes.empty() ? cluster : with_nodes(cluster, row.nodes);
}

Goal goal_of_row(Goal goal, const RankedPlan& row) {
  if (!row.nodes.empty()) goal.gpus = static_cast<int>(row.evaluation.job_ranks);
  return goal;
}

SelectedCosts::SelectedCosts(const Cluster& cluster, const CostModel& cost_model,
                             const Cluster& part) {
  if (part.groups == cluster.groups) {
    model_ = &cost_model;
    return;
  }
  std::vector<const CostModel*> kinds;
  for (const NodeGroup& group : part.groups) {
    const auto kind = std::ranges::find(cluster.groups, group.node, &NodeGroup::node);
    kinds.push_back(&cost_model.on_nodes(static_cast<std::int32_t>(kind - cluster.groups.begin())));
  }
  model_ = kinds.front();
  if (kinds.size() == 1) return;
  owned_ = make_mixed_cost_model(part, std::move(kinds));
  model_ = owned_.get();
}

std::vector<std::vector<NodeGroup>> node_selections(const Cluster& cluster, int gpus) {
  return Selections(cluster, gpus).run();
}

SearchResult search_node_selections(const ModelGraph& model, const Cluster& cluster,
                                    const CostModel& cost_model, const Goal& goal,
                                    const FixedChoices& fixed, const SearchOptions& options) {
  LayerPrices layer_prices;
  const auto search_on = [&](const Nodes& nodes, const SearchOptions& in_order) {
    const Cluster part = with_nodes(cluster, nodes);
    const SelectedCosts costs(cluster, cost_model, part);
    Goal on_part = goal;
    on_part.gpus = std::min(goal.gpus, device_count(part));
    SearchOptions once = in_order;
    // With replicas on one type of node each, the order does not matter.
    once.tries_shares =
        in_order.tries_shares && std::ranges::is_sorted(nodes, {}, &NodeGroup::node);
    return search(model, part, costs.model(), on_part, fixed, once);
  };
  std::vector<Nodes> selections = node_selections(cluster, goal.gpus);
  std::ranges::stable_sort(selections, std::greater(), [&](const Nodes& nodes) {
    return std::pair(nodes.size(), device_count(with_nodes(cluster, nodes)));
  });
  SearchOptions sharing = options;
  sharing.layer_prices = &layer_prices;
  sharing.refines = false;  // it would refine the best plan of every selection
  SelectionSearch searches(sharing, search_on);
  std::optional<InputError> problem;
  bool any_possible = false;
  for (const Nodes& nodes : selections) try {
      searches.run(nodes);
      any_possible = true;
    } catch (const InputError& error) {
      if (!problem) problem = error;
    }
  if (!any_possible && problem) throw InputError(*problem);
  return searches.take();
}

}  // namespace meshwright
