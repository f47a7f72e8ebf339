/// Cost model of heterogeneous clusters.
#pragma once

#include <memory>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {

/// One device cost model per node group, accessible through CostModel::on_nodes(). Work without a
/// node type (collectives and messages across several types) is priced as on the slowest type.
std::unique_ptr<CostModel> make_mixed_cost_model(const Cluster& cluster, const Trainer& trainer);
/// The same from cost models by node group of `cluster`, which must outlive the result.
std::unique_ptr<CostModel> make_mixed_cost_model(const Cluster& cluster,
                                                 std::vector<const CostModel*> kinds);

}  // namespace meshwright
