/// Analytic costs from a cluster's figures: roofline per kernel with shape-dependent efficiency,
/// NCCL's tuner for collectives, latency + size / bandwidth for messages.
#pragma once

#include <memory>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"

namespace meshwright {

/// For jobs on `cluster`; if its nodes are of several kinds, see mixed_cost_model.hpp. Keeps its
/// own copy of the figures.
std::unique_ptr<CostModel> make_device_cost_model(const Cluster& cluster);

}  // namespace meshwright
