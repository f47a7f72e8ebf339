/// Facts about a job that evaluate() needs in addition to its task graph.
#pragma once

#include "core/cluster.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "simulator/simulate.hpp"

namespace meshwright {

/// Peak rate and memory are minima over the devices of the job (devices 0, 1, …).
JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster);

}  // namespace meshwright
