/// What a layer of each class computes and holds on one rank.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/lowering/layers.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/attention.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/operators/saved_activations.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// Saved activations of one layer on one rank.
struct KeptActivations {
  Bytes kept;           ///< with the strategy's recomputation
  Bytes kept_if_whole;  ///< without any recomputation
  Bytes kept_if_full;   ///< under full recomputation of this layer
  WeightGradientNeeds needs;
};
KeptActivations kept_activations(const LayerCall& call, LayerId layer);

/// Memory of one layer of a class on one rank.
struct LayerHoldings : KeptActivations {
  LayerId first;  ///< of the class
  LayerParts parts;
  LogitBytes logits;
  Bytes largest;
  LocalParameters parameters;
  std::vector<LocalParameter> parameter_list;
  PartialGradients partial;
  ContextBuffers context;
  std::int64_t gradients_with_inputs = 0;  ///< elements
  std::vector<WeightMatrix> matrices;
  Bytes largest_matrix_gradient;  ///< in the type of the weights
  Bytes table_gradient;           ///< of an embedding, likewise
  Bytes head_input;               ///< of a head, gathered
};

/// One entry per layer class, in the order of Layer::layer_class. Appends the parts of their
/// passes.
std::vector<LayerHoldings> lower_layer_classes(const LayerCall& call, std::vector<WorkPart>& parts);

}  // namespace meshwright
