/// The arguments of search() that its parts share.
#pragma once

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "planner/search/fixed_choices.hpp"

namespace meshwright {

/// Refers to its parts.
struct SearchJob {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostModel& cost_model;
  Goal goal;
  FixedChoices fixed;
  int threads = 1;
};

}  // namespace meshwright
