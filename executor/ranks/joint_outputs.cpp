#include "executor/ranks/joint_outputs.hpp"

namespace meshwright {
namespace {

/// Latent attention copies parts of heads (three inputs).
bool accepts_gaps(const Operator& reader) {
  if (std::holds_alternative<RotaryEmbedding>(reader.shape)) return reader.inputs.size() < 3;
  return std::holds_alternative<Attention>(reader.shape) ||
         std::holds_alternative<Activation>(reader.shape);
}

/// By tensor: the operators that read it.
std::vector<std::vector<std::size_t>> readers_of(const ModelGraph& model) {
  std::vector<std::vector<std::size_t>> readers(model.tensors.size());
  for (std::size_t i = 0; i < model.operators.size(); ++i)
    for (const TensorId input : model.operators[i].inputs) readers[input.index()].push_back(i);
  return readers;
}

}  // namespace

std::vector<JointOutputs> joint_outputs_of(const ModelGraph& model,
                                           std::span<const LayerSharding> layers) {
  std::vector<JointOutputs> joint(model.tensors.size());
  const std::vector<std::vector<std::size_t>> readers = readers_of(model);
  const auto join = [&](OperatorId id) {
    const Operator& op = model.operators[id.index()];
    for (std::size_t first = 0, end = 0; first < op.outputs.size(); first = end) {
      const std::vector<std::size_t>& of_first = readers[op.outputs[first].index()];
      end = first + 1;
      if (of_first.size() != 1 || !accepts_gaps(model.operators[of_first.front()])) continue;
      while (end < op.outputs.size() && readers[op.outputs[end].index()] == of_first) ++end;
      if (end - first == 1) continue;
      for (std::size_t k = first; k < end; ++k)
        joint[op.outputs[k].index()] = {id, first, end - first};
    }
  };
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (layers[i].strategy.degrees.context > 1) continue;
    for (int k = 0; k < model.layers[i].operator_count; ++k) {
      const OperatorId id(model.layers[i].first_operator + k);
      if (std::holds_alternative<Linear>(model.operators[id.index()].shape)) join(id);
    }
  }
  return joint;
}

}  // namespace meshwright
