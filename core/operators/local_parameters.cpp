#include "core/operators/local_parameters.hpp"

#include <algorithm>
#include <span>

namespace meshwright {
namespace {

struct VocabularyRows {
  std::int64_t rows = 0;  ///< of tables sharded by vocabulary
};

/// Elements of a parameter on one rank. Token tables and the head, with its bias, are padded before
/// sharding.
std::int64_t local_elements(const ParameterTensor& parameter, VocabularyRows vocabulary,
                            const ParallelDegrees& degrees) {
  std::int64_t count = 1;
  bool padded = parameter.cut != ParameterCut::kTensor || parameter.shape.size() > 2;
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
