#include "core/operators/shard_shape.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright {
namespace {
constexpr std::int64_t kVocabularyMultiple = 128;

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

}  // namespace

ShardShape shard_shape_of(const Strategy& strategy) {
  return {.sequences = strategy.micro_batch,
          .sequence_length = strategy.sequence_length,
          .degrees = strategy.degrees,
          .sequence_parallel = strategy.sequence_parallel,
          .dtype = strategy.dtype,
          .attention = strategy.attention,
          .context = strategy.model_parallelism.context,
          .routing = strategy.model_parallelism.routing,
          .precision = strategy.precision,
          .reads_any_layout = false,
          .gathers_weights = strategy.zero >= 3 && !strategy.precision.fp8_parameters};
}

bool is_quantized(const ModelGraph& model, OperatorId op, const ShardShape& shard) {
  constexpr std::int64_t kMultiple = 16;
  if (!is_quantized(shard.dtype)) return false;
  const auto fits = [](std::int64_t in, std::int64_t out) {
    return in % kMultiple == 0 && out % kMultiple == 0;
  };
  const OperatorShape& shape = model.operators[op.index()].shape;
  if (const auto* expert = std::get_if<ExpertLinear>(&shape)) return fits(expert->in, expert->out);
  const auto* linear = std::get_if<Linear>(&shape);
  if (linear == nullptr || !fits(linear->in, linear->out)) return false;
  const auto after =
      std::upper_bound(model.layers.begin(), model.layers.end(), op.value,
                       [](std::int32_t id, const Layer& l) { return id < l.first_operator; });
  return after != model.layers.begin() && std::prev(after)->kind == LayerKind::kBlock;
}

int quantized_copies(const ShardShape& shard) {
  const bool one_scale = quantization_of(shard.dtype, shard.precision.fp8_recipe).block == 0;
  return one_scale && shard.reads_any_layout ? 1 : 2;
}

LocalTokens local_tokens(const ShardShape& shard) {
  LocalTokens tokens;
  tokens.sequence = divide_up(shard.sequence_length, shard.degrees.context);
  tokens.gathered = shard.sequences * tokens.sequence;
  tokens.dispatched = divide_up(tokens.gathered, shard.degrees.tensor);
  tokens.cut = shard.sequence_parallel ? tokens.dispatched : tokens.gathered;
  return tokens;
}

std::int64_t routed_rows(const ShardShape& shard, const RoutedTokens& routed, bool busiest) {
  const std::int64_t rows = local_tokens(shard).dispatched * routed.experts_per_token;
  const ExpertRouting& routing = shard.routing;
  const auto times = [](double factor, std::int64_t count) {
    return static_cast<std::int64_t>(std::ceil(factor * static_cast<double>(count)));
  };
  if (routing.capacity > 0) {
    const double mean = static_cast<double>(rows) / routed.experts;
    return routed.experts * static_cast<std::int64_t>(std::ceil(routing.capacity * mean));
  }
  if (!busiest) return rows;
  return times(std::min<double>(routing.imbalance, shard.degrees.expert), rows);
}

std::int64_t local_width(const ActivationTensor& activation, int tensor) {
  if (activation.heads > 0)
    return activation.width / activation.heads * divide_up(activation.heads, tensor);
  return divide_up(activation.width, tensor);
}

std::int64_t local_columns(const ModelGraph& model, const Operator& op, int tensor) {
  std::int64_t columns = 0;
  for (const TensorId id : op.outputs)
    columns += local_width(std::get<ActivationTensor>(model.tensors[id.index()].shape), tensor);
  return columns;
}

Bytes stored_element(Dtype dtype) { return Bytes(bytes_per_element(storage_dtype(dtype))); }

std::int64_t padded_vocabulary(std::int64_t rows, int tensor) {
  const std::int64_t multiple = kVocabularyMultiple * tensor;
  return divide_up(rows, multiple) * multiple;
}

std::int64_t activation_elements(const ActivationTensor& tensor, const ShardShape& shard) {
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

Bytes activation_bytes(const ActivationTensor& tensor, const ShardShape& shard) {
  return Bytes(activation_elements(tensor, shard) * element_bytes(tensor.element, shard.dtype));
}

}  // namespace meshwright
