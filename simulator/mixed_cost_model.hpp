/// Costs in a cluster whose nodes are of several kinds.
#pragma once

#include <memory>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"

namespace meshwright {

/// One device cost model for each node group, behind CostModel::on_nodes(). What is asked without a
/// kind (collectives and messages over nodes of several kinds) takes as long as on the slowest.
std::unique_ptr<CostModel> make_mixed_cost_model(const Cluster& cluster);

}  // namespace meshwright
