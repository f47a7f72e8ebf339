#include "core/operators/saved_activations.hpp"

#include <algorithm>

#include "core/operators/attention.hpp"
#include "core/operators/recompute_operators.hpp"

namespace meshwright {
namespace {

/// Sums tensors, each once. With a few dozen tensors per layer, a linear search is fastest.
class TensorSum {
 public:
  TensorSum(const ModelGraph& model, const ShardShape& shard) : model_(model), shard_(shard) {}
  void skip(TensorId id) { seen_.push_back(id); }
  void add(TensorId id) { add(id, shard_); }
  void add(TensorId id, const ShardShape& shard) {
    if (std::find(seen_.begin(), seen_.end(), id) != seen_.end()) return;
    seen_.push_back(id);
    sum_ += activation_bytes(activation_of(model_, id), shard);
  }
  void add(Bytes bytes) { sum_ += bytes; }
  Bytes sum() const { return sum_; }

 private:
  const ModelGraph& model_;
  const ShardShape& shard_;
  std::vector<TensorId> seen_;
  Bytes sum_;
};

/// The logits are counted by logit_bytes().
void skip_logits(std::span<const Operator> operators, TensorSum& sum) {
  for (const Operator& op : operators)
    if (std::holds_alternative<CrossEntropy>(op.shape)) {
      for (const TensorId id : op.inputs) sum.skip(id);
      for (const TensorId id : op.kept) sum.skip(id);
    }
}

bool keeps_scores(const ShardShape& shard, const Recompute& recompute) {
  return shard.attention == AttentionAlgorithm::kStandard &&
         recompute.kind != RecomputeKind::kSelective;
}

/// Inputs produced by other layers: the saved activations of a fully recomputed block.
Bytes layer_input_bytes(const ModelGraph& model, std::span<const Operator> operators,
                        const ShardShape& shard) {
  TensorSum sum(model, shard);
  for (const Operator& op : operators)
    for (const TensorId id : op.outputs) sum.skip(id);
  for (const Operator& op : operators)
    for (const TensorId id : op.inputs) sum.add(id);
  return sum.sum();
}

bool has_weight_product(const OperatorShape& shape) {
  return std::holds_alternative<Linear>(shape) || std::holds_alternative<ExpertLinear>(shape) ||
         std::holds_alternative<Router>(shape);
}

/// One copy of an activation as a quantized GEMM reads it.
Bytes quantized_activation(const ActivationTensor& tensor, const ShardShape& shard) {
  return quantized_bytes(quantization_of(shard.dtype, shard.precision.fp8_recipe),
                         activation_elements(tensor, shard));
}

}  // namespace

Bytes kept_activation_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                            const Recompute& recompute, const TrainerMemory& memory) {
  const std::span<const Operator> operators = operators_of(model, layer);
  const bool is_block = model.layers[layer.index()].kind == LayerKind::kBlock;
  if (is_block && recompute.kind == RecomputeKind::kFull)
    return layer_input_bytes(model, operators, shard);
  if (is_block && (recompute.kind == RecomputeKind::kModules ||
                   recompute.kind == RecomputeKind::kTorchSelective))
    return kept_with_recomputed_operators(model, layer, shard, recompute, memory);
  const bool scores = keeps_scores(shard, recompute);
  TensorSum sum(model, shard);
  skip_logits(operators, sum);
  Bytes statistics;
  for (const Operator& op : operators) {
    if (!saves_tensors_of(op, memory)) continue;
    if (is_quantized(model, id_of(model, op), shard)) {
      for (const TensorId id : op.kept)
        sum.add(quantized_activation(activation_of(model, id), shard));
      continue;
    }
    for (const TensorId id : op.kept)
      if (scores || !activation_of(model, id).per_key) sum.add(id);
    const auto* attention = std::get_if<Attention>(&op.shape);
    if (attention == nullptr || shard.attention != AttentionAlgorithm::kFlash) continue;
    statistics += softmax_statistics(*attention, shard);
    // Fused attention needs its output; a 16-bit projection after it saves the same tensor.
    if (is_quantized(shard.dtype))
      for (const TensorId id : op.outputs) sum.add(id);
  }
  return sum.sum() + statistics;
}

bool saves_tensors_of(const Operator& op, const TrainerMemory& memory) {
  return !memory.weighs_expert_activations || !std::holds_alternative<TokenCombine>(op.shape);
}

WeightGradientNeeds weight_gradient_needs(const ModelGraph& model, LayerId layer,
                                          const ShardShape& shard) {
  const std::span<const Operator> operators = operators_of(model, layer);
  TensorSum inputs(model, shard), gradients(model, shard);
  skip_logits(operators, gradients);
  ShardShape all_tokens = shard;
  all_tokens.sequence_parallel = false;
  for (const Operator& op : operators) {
    if (!has_weight_product(op.shape)) continue;
    const bool quantized = is_quantized(model, id_of(model, op), shard);
    const auto note = [&](TensorSum& sum, TensorId id, const ShardShape& as) {
      if (quantized)
        sum.add(quantized_activation(activation_of(model, id), as));
      else
        sum.add(id, as);
    };
    for (const TensorId id : op.inputs) note(inputs, id, shard);
    // The output gradient of a row-parallel GEMM was gathered for the input gradient and is not
    // gathered again for the weights: with t tensor ranks, the gradients of a GPT layer take
    // T B H (14 / t + 4) bytes, with or without sequence parallelism.
    const auto* linear = std::get_if<Linear>(&op.shape);
    const bool is_summed = linear != nullptr && linear->cut == LinearCut::kRow;
    for (const TensorId id : op.outputs) note(gradients, id, is_summed ? all_tokens : shard);
  }
  return {.inputs = inputs.sum(), .output_gradients = gradients.sum()};
}

Bytes largest_activation(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  const std::span<const Operator> operators = operators_of(model, layer);
  ShardShape gathered = shard;  // inputs of sharded GEMMs are gathered before use
  gathered.sequence_parallel = false;
  Bytes largest;
  for (const Operator& op : operators) {
    if (std::holds_alternative<CrossEntropy>(op.shape)) continue;
    for (const TensorId id : op.inputs)
      largest = std::max(largest, activation_bytes(activation_of(model, id), gathered));
    for (const TensorId id : op.outputs) {
      const ActivationTensor& tensor = activation_of(model, id);
      const auto* linear = std::get_if<Linear>(&op.shape);
      const bool makes_logits = &op + 1 < operators.data() + operators.size() &&
                                std::holds_alternative<CrossEntropy>((&op + 1)->shape) &&
                                linear != nullptr;
      if (!makes_logits) largest = std::max(largest, activation_bytes(tensor, gathered));
    }
  }
  return largest;
}

Bytes gathered_head_input(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  ShardShape gathered = shard;
  gathered.sequence_parallel = false;
  Bytes input;
  for (const Operator& op : operators_of(model, layer)) {
    if (std::holds_alternative<CrossEntropy>(op.shape)) return input;
    if (std::holds_alternative<Linear>(op.shape))
      input = activation_bytes(activation_of(model, op.inputs.front()), gathered);
  }
  return Bytes(0);
}

}  // namespace meshwright
