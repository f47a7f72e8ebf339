/// Facts about a job that evaluate() needs in addition to its task graph.
#pragma once

#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "simulator/engine/simulate.hpp"

namespace meshwright {

/// Peak rate and memory are minima over the devices of the job (devices 0, 1, …).
JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster);

}  // namespace meshwright
