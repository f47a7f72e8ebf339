#include "core/lowering/layer_holdings.hpp"

#include <algorithm>

#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

/// Elements of has_gradient_with_inputs(): full, or sharded over tensor ranks.
std::int64_t gradients_with_inputs(const ModelGraph& model, LayerId layer, int tensor_ranks) {
  std::int64_t elements = 0;
  for (const Operator& op : operators_of(model, layer)) {
    if (has_weight_gradient(op.shape)) continue;
    for (const TensorId id : op.parameters) {
      const auto& parameter = std::get<ParameterTensor>(model.tensors[id.index()].shape);
      std::int64_t count = 1;
      for (const std::int64_t extent : parameter.shape) count *= extent;
      elements += parameter.cut == ParameterCut::kTensor ? divide_up(count, tensor_ranks) : count;
    }
  }
  return elements;
}

void note_activations(const LayerCall& call, LayerHoldings& held) {
  static_cast<LayerActivations&>(held) = layer_activations(call, held.first);
  held.logits = logit_bytes(call.model, held.first, call.shard);
}

void note_parameters(const LayerCall& call, LayerHoldings& held) {
  held.parameter_list = local_parameter_list(call.model, held.first, call.shard);
  for (const LocalParameter& parameter : held.parameter_list)
    (parameter.expert ? held.parameters.expert : held.parameters.dense) += parameter.count;
  // Tensor ranks that share the tokens each have gradients of all weights, from their tokens.
  held.partial = call.context_axis == Axis::kTensor
                     ? PartialGradients{.over_tensor = held.parameters.dense}
                     : partial_gradients(call.model, held.first, call.shard);
  held.gradients_with_inputs =
      gradients_with_inputs(call.model, held.first, call.strategy.degrees.tensor);
}

void note_weight_gradients(const LayerCall& call, LayerHoldings& held) {
  held.matrices = weight_matrices(call.model, held.first, call.shard);
  const Bytes element = stored_element(call.shard.dtype);
  for (const WeightMatrix& m : held.matrices)
    held.largest_matrix_gradient =
        std::max(held.largest_matrix_gradient, element * (m.rows * m.columns * m.count));
  held.table_gradient = element * local_table_elements(call.model, held.first, call.shard);
  held.head_input = gathered_head_input(call.model, held.first, call.shard);
}

}  // namespace

LayerActivations layer_activations(const LayerCall& call, LayerId layer) {
  const auto kept = [&](const Recompute& how) {
    return kept_activation_bytes(call.model, layer, call.shard, how, call.memory);
  };
  const Recompute& recompute = call.strategy.recompute;
  LayerActivations held;
  held.kept_if_whole = kept({});
  held.kept_if_full = kept({.kind = RecomputeKind::kFull});
  held.kept = recomputes_operators(recompute.kind) ? kept(recompute) : held.kept_if_whole;
  held.needs = weight_gradient_needs(call.model, layer, call.shard);
  held.needs.inputs = std::min(held.needs.inputs, held.kept);
  held.largest = largest_activation(call.model, layer, call.shard);
  held.context = context_buffers(call.model, layer, call.shard);
  return held;
}

std::vector<LayerId> first_of_classes(const ModelGraph& model) {
  std::vector<LayerId> first;
  for (std::size_t i = 0; i < model.layers.size(); ++i)
    if (model.layers[i].layer_class == static_cast<std::int32_t>(first.size()))
      first.emplace_back(i);
  return first;
}

std::vector<LayerHoldings> lower_layer_classes(const LayerCall& call, bool only_blocks,
                                               std::vector<WorkPart>& parts) {
  std::vector<LayerHoldings> classes;
  for (const LayerId layer : first_of_classes(call.model)) {
    LayerHoldings& held = classes.emplace_back();
    held.first = layer;
    if (only_blocks && call.model.layers[layer.index()].kind != LayerKind::kBlock) continue;
    held.parts = append_layer_parts(call, held.first, parts);
    note_activations(call, held);
    note_parameters(call, held);
    note_weight_gradients(call, held);
  }
  return classes;
}

}  // namespace meshwright
