/// Which nodes of a heterogeneous cluster a job uses, and in which order: ranks are numbered over
/// the nodes in order, so pipeline ranks are on consecutive ones.
#pragma once

#include <memory>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// The cluster with these nodes only. Names of the nodes must be those of the cluster's.
Cluster with_nodes(const Cluster& cluster, const std::vector<NodeGroup>& nodes);
/// The nodes that a row of a search of `cluster` is on, and the goal with the devices it uses.
Cluster nodes_of_row(const Cluster& cluster, const RankedPlan& row);
Goal goal_of_row(Goal goal, const RankedPlan& row);

/// Cost model of some nodes of a cluster: that of their type, or of several types.
class SelectedCosts {
 public:
  /// Refers to `cost_model`, that of the cluster; `part`: see nodes_of_row().
  SelectedCosts(const Cluster& cluster, const CostModel& cost_model, const Cluster& part);
  const CostModel& model() const { return *model_; }

 private:
  std::unique_ptr<CostModel> owned_;
  const CostModel* model_ = nullptr;
};

/// The selections that are searched for at most `gpus` devices: every node type alone, and every
/// set of types in every order, with all nodes of the types. If these are too many, the types are
/// filled one after another, in every order. Also with the numbers of nodes rounded down to powers
/// of two. Types with the same node are joined. Empty if not even one node is small enough.
std::vector<std::vector<NodeGroup>> node_selections(const Cluster& cluster, int gpus);

/// search() on every selection: RankedPlan::nodes of every row, SearchResult::by_nodes. A row is
/// the best plan of its parallel sizes over all orders of the same nodes. Throws InputError if the
/// goal is impossible on all of them.
SearchResult search_node_selections(const ModelGraph& model, const Cluster& cluster,
                                    const CostModel& cost_model, const Goal& goal,
                                    const FixedChoices& fixed, const SearchOptions& options);

}  // namespace meshwright
