#include "core/operators/operator_work.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright {
namespace {
constexpr std::int64_t kVocabularyMultiple = 128;
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

Flops forward_flops(const Operator& op, std::int64_t sequences, std::int64_t sequence_length) {
  const double tokens = static_cast<double>(sequences) * static_cast<double>(sequence_length);
  const auto product = [tokens](std::int64_t in, std::int64_t out, int rows_per_token) {
    return Flops(2.0 * tokens * rows_per_token * static_cast<double>(in) *
                 static_cast<double>(out));
  };
  if (const auto* linear = std::get_if<Linear>(&op.shape))
    return product(linear->in, linear->out, 1);
  if (const auto* expert = std::get_if<ExpertLinear>(&op.shape))
    return product(expert->in, expert->out, expert->experts_per_token);
  if (const auto* router = std::get_if<Router>(&op.shape))
    return product(router->hidden, router->experts, 1);
  if (const auto* attention = std::get_if<Attention>(&op.shape)) {
    const std::int64_t keys =
        std::min(sequence_length, attention->window.value_or(sequence_length));
    return product(attention->heads * (attention->key_size + attention->value_size), keys, 1);
  }
  return Flops(0.0);
}

}  // namespace meshwright
