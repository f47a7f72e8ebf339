/// What evaluate() needs to know about a job beside its task graph.
#pragma once

#include "core/cluster.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "simulator/simulate.hpp"

namespace meshwright {

/// Peak rate and memory are those of the weakest device that the job uses (devices 0, 1, …).
JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster);

}  // namespace meshwright
