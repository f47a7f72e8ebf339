/// The arguments of search() that its parts share.
#pragma once

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "planner/search/fixed_choices.hpp"

namespace meshwright {

struct LayerPrices;

/// Refers to its parts.
struct SearchJob {
  const ModelGraph& model;
  const Cluster& cluster;
  const CostModel& cost_model;
  Goal goal;
  FixedChoices fixed;
  int threads = 1;
  LayerPrices* layer_prices = nullptr;  ///< shared with other searches; null: not shared
};

}  // namespace meshwright
