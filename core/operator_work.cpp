#include "core/operator_work.hpp"

#include <algorithm>

namespace meshwright {
namespace {
constexpr std::int64_t kVocabularyMultiple = 128;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
}  // namespace

ShardShape shard_shape_of(const Strategy& strategy) {
  return {.sequences = strategy.micro_batch,
          .sequence_length = strategy.sequence_length,
          .degrees = strategy.degrees,
          .sequence_parallel = strategy.sequence_parallel,
          .dtype = strategy.dtype,
          .attention = strategy.attention};
}

LocalTokens local_tokens(const ShardShape& shard) {
  LocalTokens tokens;
  tokens.sequence = divide_up(shard.sequence_length, shard.degrees.context);
  tokens.gathered = shard.sequences * tokens.sequence;
  tokens.dispatched = divide_up(tokens.gathered, shard.degrees.tensor);
  tokens.cut = shard.sequence_parallel ? tokens.dispatched : tokens.gathered;
  return tokens;
}

Bytes stored_element(Dtype dtype) {
  return Bytes(bytes_per_element(dtype == Dtype::kFp8 ? Dtype::kBf16 : dtype));
}

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
