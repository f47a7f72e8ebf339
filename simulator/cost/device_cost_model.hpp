/// Analytic cost model from a cluster's hardware figures: a roofline with shape-dependent
/// efficiency for kernels, NCCL's tuning model for collectives, latency + size / bandwidth for
/// messages.
#pragma once

#include <memory>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {

/// Cost model for `cluster` under `trainer`; for heterogeneous clusters the one of
/// mixed_cost_model.hpp. Copies the figures.
std::unique_ptr<CostModel> make_device_cost_model(const Cluster& cluster,
                                                  const Trainer& trainer = {});

}  // namespace meshwright
