#include "executor/ranks/joint_outputs.hpp"

#include <algorithm>

namespace meshwright {
namespace {

/// Latent attention copies parts of heads (three inputs).
bool accepts_gaps(const Operator& reader) {
  if (std::holds_alternative<RotaryEmbedding>(reader.shape)) return reader.inputs.size() < 3;
  return std::holds_alternative<Attention>(reader.shape) ||
         std::holds_alternative<Norm>(reader.shape) ||
         std::holds_alternative<Activation>(reader.shape);
}

}  // namespace

std::vector<OperatorId> joint_producers(const ModelGraph& model, const Strategy& strategy) {
  std::vector<OperatorId> producers(model.tensors.size(), OperatorId(-1));
  if (strategy.degrees.context > 1) return producers;
  std::vector<bool> has_other_readers(model.tensors.size());
  for (const Operator& op : model.operators)
    if (!accepts_gaps(op))
      for (const TensorId input : op.inputs) has_other_readers[input.index()] = true;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    const bool is_joint = std::holds_alternative<Linear>(op.shape) && op.outputs.size() > 1 &&
                          std::ranges::none_of(op.outputs, [&](TensorId id) {
                            return has_other_readers[id.index()];
                          });
    if (!is_joint) continue;
    for (const TensorId output : op.outputs) producers[output.index()] = OperatorId(i);
  }
  return producers;
}

}  // namespace meshwright
