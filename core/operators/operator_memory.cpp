#include <algorithm>

#include "core/base/check.hpp"
#include "core/operators/operator_work.hpp"
#include "core/operators/recompute_operators.hpp"

namespace meshwright {
namespace {

std::int64_t element_bytes(ElementWidth width, Dtype dtype) {
  switch (width) {
    case ElementWidth::kCompute:
      return stored_element(dtype).value;
    case ElementWidth::kMask:
      return 1;
    case ElementWidth::kFloat32:
      break;
  }
  return kFloat32Bytes;
}

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

/// Softmax row sums saved by fused attention: fp32, one per head and token.
Bytes softmax_statistics(const Attention& attention, const ShardShape& shard) {
  return Bytes(local_tokens(shard).gathered * divide_up(attention.heads, shard.degrees.tensor) *
               kFloat32Bytes);
}

bool has_weight_product(const OperatorShape& shape) {
  return std::holds_alternative<Linear>(shape) || std::holds_alternative<ExpertLinear>(shape) ||
         std::holds_alternative<Router>(shape);
}

/// Elements of an activation tensor on one rank.
std::int64_t local_activation(const ActivationTensor& tensor, const ShardShape& shard) {
  const LocalTokens tokens = local_tokens(shard);
  const ParallelDegrees& degrees = shard.degrees;
  const bool features_are_cut = tensor.cut == ActivationCut::kFeatures;
  std::int64_t rows = features_are_cut ? tokens.gathered : tokens.cut;
  std::int64_t width = features_are_cut ? local_width(tensor, degrees.tensor) : tensor.width;
  if (tensor.routed) {  // all rows of the expert-tensor group, sharded features
    rows = routed_rows(shard, {tensor.rows_per_token, std::max(1, tensor.experts)}, true) *
           degrees.expert_tensor;
    width = features_are_cut ? divide_up(tensor.width, degrees.expert_tensor) : tensor.width;
  }
  if (tensor.per_key) width *= shard.sequence_length;
  return rows * width;
}

/// One copy of an activation as a quantized GEMM reads it.
Bytes quantized_activation(const ActivationTensor& tensor, const ShardShape& shard) {
  return quantized_bytes(quantization_of(shard.dtype, shard.precision.fp8_recipe),
                         local_activation(tensor, shard));
}

OperatorId id_of(const ModelGraph& model, const Operator& op) {
  return OperatorId(static_cast<std::int32_t>(&op - model.operators.data()));
}

}  // namespace

Bytes activation_bytes(const ActivationTensor& tensor, const ShardShape& shard) {
  return Bytes(local_activation(tensor, shard) * element_bytes(tensor.element, shard.dtype));
}

Bytes kept_activation_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                            const Recompute& recompute) {
  const std::span<const Operator> operators = operators_of(model, layer);
  const bool is_block = model.layers[layer.index()].kind == LayerKind::kBlock;
  if (is_block && recompute.kind == RecomputeKind::kFull)
    return layer_input_bytes(model, operators, shard);
  if (is_block && (recompute.kind == RecomputeKind::kModules ||
                   recompute.kind == RecomputeKind::kTorchSelective))
    return kept_with_recomputed_operators(model, layer, shard, recompute);
  const bool scores = keeps_scores(shard, recompute);
  TensorSum sum(model, shard);
  skip_logits(operators, sum);
  Bytes statistics;
  for (const Operator& op : operators) {
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

Bytes kept_bytes_change(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                        const TrainerMemory& memory) {
  if (!memory.weighs_expert_activations) return {};
  TensorSum combined(model, shard);
  for (const Operator& op : operators_of(model, layer))
    if (std::holds_alternative<TokenCombine>(op.shape))
      for (const TensorId id : op.kept) combined.add(id);
  return -combined.sum();
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

std::int64_t local_words(const ModelGraph& model, const Operator& loss, const ShardShape& shard) {
  const std::int64_t words = std::get<CrossEntropy>(loss.shape).vocabulary;
  if (loss.inputs.empty()) return words;
  const ActivationTensor& logits = activation_of(model, loss.inputs.front());
  if (logits.cut != ActivationCut::kFeatures) return words;
  return padded_vocabulary(words, shard.degrees.tensor) / shard.degrees.tensor;
}

LogitBytes logit_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  LogitBytes bytes;
  for (const Operator& op : operators_of(model, layer)) {
    const auto* loss = std::get_if<CrossEntropy>(&op.shape);
    if (loss == nullptr) continue;
    const std::int64_t count = local_tokens(shard).gathered * local_words(model, op, shard);
    bytes.values += Bytes(count * kFloat32Bytes);
    bytes.gradient += stored_element(shard.dtype) * count;
    bytes.sharded = local_words(model, op, shard) < loss->vocabulary;
  }
  return bytes;
}

AttentionBytes attention_bytes(const Attention& a, const ShardShape& shard) {
  const std::int64_t tokens = local_tokens(shard).gathered;
  const std::int64_t heads = divide_up(a.heads, shard.degrees.tensor);
  const std::int64_t key_heads = divide_up(a.key_value_heads, shard.degrees.tensor);
  const Bytes row = stored_element(shard.dtype) * tokens;
  return {.queries = row * (heads * a.key_size),
          .key_values = row * (key_heads * (a.key_size + a.value_size)),
          .outputs = row * (heads * a.value_size)};
}

ContextBuffers context_buffers(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  ContextBuffers most;
  if (shard.degrees.context == 1) return most;
  for (const Operator& op : operators_of(model, layer)) {
    const auto* attention = std::get_if<Attention>(&op.shape);
    if (attention == nullptr) continue;
    const AttentionBytes bytes = attention_bytes(*attention, shard);
    const std::int64_t blocks =
        shard.context == ContextAlgorithm::kRing ? 2 : shard.degrees.context;
    ContextBuffers held{bytes.key_values * blocks, bytes.key_values * (2 * blocks)};
    if (shard.context == ContextAlgorithm::kAllToAll)
      held.forward = held.backward = bytes.queries + bytes.key_values;
    most.forward = std::max(most.forward, held.forward);
    most.backward = std::max(most.backward, held.backward);
  }
  return most;
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

// ---- parameters -----------------------------------------------------------------------------

namespace {

struct VocabularyRows {
  std::int64_t rows = 0;  ///< of tables sharded by vocabulary
};

/// Elements of a parameter on one rank. Token tables and the head are padded before sharding.
std::int64_t local_elements(const ParameterTensor& parameter, VocabularyRows vocabulary,
                            const ParallelDegrees& degrees) {
  std::int64_t count = 1;
  bool padded = parameter.cut != ParameterCut::kTensor || parameter.shape.size() != 2;
  for (std::int64_t extent : parameter.shape) {
    if (!padded && extent == vocabulary.rows) {
      extent = padded_vocabulary(extent, degrees.tensor);
      padded = true;
    }
    count *= extent;
  }
  switch (parameter.cut) {
    case ParameterCut::kReplicated:
      return count;
    case ParameterCut::kTensor:
      return divide_up(count, degrees.tensor);
    case ParameterCut::kExpert:
      break;
  }
  return divide_up(count, std::int64_t{degrees.expert} * degrees.expert_tensor);
}

VocabularyRows vocabulary_of(std::span<const Operator> operators) {
  VocabularyRows vocabulary;
  for (const Operator& op : operators) {
    if (const auto* table = std::get_if<EmbeddingLookup>(&op.shape))
      vocabulary.rows = std::max(vocabulary.rows, table->rows);
    if (const auto* loss = std::get_if<CrossEntropy>(&op.shape)) vocabulary.rows = loss->vocabulary;
  }
  return vocabulary;
}

/// True if an earlier layer uses the parameter. Only the first and the last layer share tables in
/// the supported models, so only the first layer is searched.
bool belongs_to_first_layer(const ModelGraph& model, LayerId layer, TensorId id) {
  if (layer.value == 0) return false;
  for (const Operator& op : operators_of(model, LayerId(0)))
    if (std::find(op.parameters.begin(), op.parameters.end(), id) != op.parameters.end())
      return true;
  return false;
}

}  // namespace

namespace {

/// True for GEMMs with whole heads as outputs and more ranks than heads.
bool makes_head_copies(const ModelGraph& model, const Operator& op, const ParallelDegrees& d) {
  const auto* linear = std::get_if<Linear>(&op.shape);
  if (linear == nullptr || linear->cut != LinearCut::kColumn) return false;
  return std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
    const int heads = activation_of(model, id).heads;
    return heads > 0 && d.tensor > heads;
  });
}

/// Elements of one parameter of an operator on one rank.
std::int64_t local_elements_of(const ModelGraph& model, const Operator& op, TensorId id,
                               VocabularyRows vocabulary, const ParallelDegrees& degrees) {
  const auto& parameter = std::get<ParameterTensor>(model.tensors[id.index()].shape);
  if (parameter.cut != ParameterCut::kTensor || !makes_head_copies(model, op, degrees))
    return local_elements(parameter, vocabulary, degrees);
  std::int64_t rows = 1;  // all but the columns
  for (const std::int64_t extent : parameter.shape) rows *= extent;
  rows /= std::get<Linear>(op.shape).out;
  return rows * local_columns(model, op, degrees.tensor);
}

}  // namespace

std::vector<LocalParameter> local_parameter_list(const ModelGraph& model, LayerId layer,
                                                 const ShardShape& shard) {
  const std::span<const Operator> operators = operators_of(model, layer);
  const VocabularyRows vocabulary = vocabulary_of(operators);
  std::vector<LocalParameter> list;
  std::vector<TensorId> seen;
  for (const Operator& op : operators)
    for (const TensorId id : op.parameters) {
      if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
      seen.push_back(id);
      if (belongs_to_first_layer(model, layer, id)) continue;
      const auto& parameter = std::get<ParameterTensor>(model.tensors[id.index()].shape);
      list.push_back({local_elements_of(model, op, id, vocabulary, shard.degrees),
                      parameter.cut == ParameterCut::kExpert,
                      id == op.parameters.front() && is_quantized(model, id_of(model, op), shard)});
    }
  return list;
}

std::int64_t local_vocabulary_parameters(const ModelGraph& model, LayerId layer,
                                         const ShardShape& shard) {
  const std::span<const Operator> operators = operators_of(model, layer);
  const VocabularyRows vocabulary = vocabulary_of(operators);
  std::int64_t count = 0;
  for (const Operator& op : operators)
    for (const TensorId id : op.parameters) {
      const ParameterTensor& parameter = parameter_of(model, id);
      const bool has_words = std::find(parameter.shape.begin(), parameter.shape.end(),
                                       vocabulary.rows) != parameter.shape.end();
      if (parameter.cut == ParameterCut::kTensor && has_words &&
          !belongs_to_first_layer(model, layer, id))
        count += local_elements(parameter, vocabulary, shard.degrees);
    }
  return count;
}

std::vector<WeightMatrix> weight_matrices(const ModelGraph& model, LayerId layer,
                                          const ShardShape& shard) {
  const std::span<const Operator> operators = operators_of(model, layer);
  const VocabularyRows vocabulary = vocabulary_of(operators);
  std::vector<WeightMatrix> matrices;
  for (const Operator& op : operators) {
    const auto* linear = std::get_if<Linear>(&op.shape);
    const auto* experts = std::get_if<ExpertLinear>(&op.shape);
    if ((linear == nullptr && experts == nullptr) || op.parameters.empty()) continue;
    const std::int64_t elements =
        local_elements_of(model, op, op.parameters.front(), vocabulary, shard.degrees);
    const int count = experts ? std::max(1, experts->experts / shard.degrees.expert) : 1;
    const std::int64_t in = linear ? linear->in : experts->in;
    const LinearCut cut = linear ? linear->cut : experts->cut;
    const int ranks = linear ? shard.degrees.tensor : shard.degrees.expert_tensor;
    const std::int64_t rows = cut == LinearCut::kRow ? divide_up(in, ranks) : in;
    matrices.push_back({rows, divide_up(elements, rows * count), count});
  }
  return matrices;
}

std::int64_t local_table_elements(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  const std::span<const Operator> operators = operators_of(model, layer);
  const VocabularyRows vocabulary = vocabulary_of(operators);
  std::int64_t largest = 0;
  for (const Operator& op : operators)
    if (std::holds_alternative<EmbeddingLookup>(op.shape))
      largest = std::max(
          largest, local_elements_of(model, op, op.parameters.front(), vocabulary, shard.degrees));
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

LocalParameters local_parameters(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  LocalParameters local;
  for (const LocalParameter& parameter : local_parameter_list(model, layer, shard))
    (parameter.expert ? local.expert : local.dense) += parameter.count;
  return local;
}

PartialGradients partial_gradients(const ModelGraph& model, LayerId layer,
                                   const ShardShape& shard) {
  PartialGradients partial;
  if (shard.degrees.tensor == 1) return partial;
  for (const Operator& op : operators_of(model, layer)) {
    const bool works_on_features =
        !op.outputs.empty() &&
        activation_of(model, op.outputs.front()).cut == ActivationCut::kFeatures;
    for (const TensorId id : op.parameters) {
      const auto& parameter = std::get<ParameterTensor>(model.tensors[id.index()].shape);
      if (parameter.cut == ParameterCut::kReplicated &&
          (works_on_features || shard.sequence_parallel))
        partial.over_tensor += local_elements(parameter, {}, shard.degrees);
    }
    if (!makes_head_copies(model, op, shard.degrees)) continue;
    const auto& linear = std::get<Linear>(op.shape);
    for (const TensorId id : op.outputs)
      if (const ActivationTensor& output = activation_of(model, id); output.heads > 0)
        partial.over_copies +=
            (linear.in + (linear.bias ? 1 : 0)) * local_width(output, shard.degrees.tensor);
  }
  return partial;
}

std::int64_t local_tied_parameters(const ModelGraph& model, const ShardShape& shard) {
  if (!model.tied_embeddings || model.layers.size() < 2) return 0;
  const LayerId head(model.layers.size() - 1);
  const std::span<const Operator> operators = operators_of(model, head);
  std::int64_t count = 0;
  for (const Operator& op : operators)
    for (const TensorId id : op.parameters)
      if (belongs_to_first_layer(model, head, id))
        count += local_elements(std::get<ParameterTensor>(model.tensors[id.index()].shape),
                                vocabulary_of(operators), shard.degrees);
  return count;
}

}  // namespace meshwright
