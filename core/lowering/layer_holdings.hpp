/// What a layer of each class computes and holds on one rank.
#pragma once

#include <algorithm>
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

/// Activations of one layer on one rank: what it saves, and what its passes need beside that.
struct LayerActivations {
  Bytes kept;           ///< with the strategy's recomputation
  Bytes kept_if_whole;  ///< without any recomputation
  Bytes kept_if_full;   ///< under full recomputation of this layer
  WeightGradientNeeds needs;
  Bytes largest;
  ContextBuffers context;

  Bytes working_forward() const { return largest; }
  /// If `of_kept` is kept: recomputed activations, and the input and output gradients of the
  /// largest operator.
  Bytes working_backward(Bytes of_kept) const {
    return std::max(Bytes(0), kept_if_whole - of_kept) + largest * 2;
  }
};
LayerActivations layer_activations(const LayerCall& call, LayerId layer);

/// Memory of one layer of a class on one rank.
struct LayerHoldings : LayerActivations {
  LayerId first;  ///< of the class
  LayerParts parts;
  LogitBytes logits;
  LocalParameters parameters;
  std::vector<LocalParameter> parameter_list;
  PartialGradients partial;
  std::int64_t gradients_with_inputs = 0;  ///< elements
  std::vector<WeightMatrix> matrices;
  Bytes largest_matrix_gradient;  ///< in the type of the weights
  Bytes table_gradient;           ///< of an embedding, likewise
  Bytes head_input;               ///< of a head, gathered
};

/// The first layer of every class, in the order of Layer::layer_class.
std::vector<LayerId> first_of_classes(const ModelGraph& model);

/// One entry per layer class, in the order of Layer::layer_class. Appends the parts of their
/// passes. `only_blocks`: entries of other layers stay empty.
std::vector<LayerHoldings> lower_layer_classes(const LayerCall& call, bool only_blocks,
                                               std::vector<WorkPart>& parts);

}  // namespace meshwright
