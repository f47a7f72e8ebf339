#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

float largest(const LogitShard& shard, std::int64_t row) {
  Chunk buffer;
  float maximum = -__builtin_inff();
  for_each_chunk(shard.tokens, [&](std::int64_t first, std::int64_t count) {
    const float* x = load(shard.logits, row, first, count, buffer);
    maximum = larger(maximum_of(count, [&](std::int64_t i) { return x[i]; }), maximum);
  });
  return maximum;
}

/// Chunks are summed in fp32 lanes, their sums in double.
float sum_of_exponentials(const LogitShard& shard, std::int64_t row, float maximum) {
  Chunk buffer;
  double sum = 0;
  for_each_chunk(shard.tokens, [&](std::int64_t first, std::int64_t count) {
    const float* x = load(shard.logits, row, first, count, buffer);
    Lanes lanes;
    lanes.add(count, [&](std::int64_t i) { return exponential(x[i] - maximum); });
    sum += static_cast<double>(lanes.total());
  });
  return static_cast<float>(sum);
}

float logit_of(const LogitShard& shard, std::int64_t row, std::int64_t token) {
  const std::int64_t column = token - shard.first_token;
  return column >= 0 && column < shard.tokens ? element_of(shard.logits, row, column) : 0.0F;
}

}  // namespace

void run(const Launch&, const CrossEntropyMaximum& a) {
  for (std::int64_t n = 0; n < a.shard.logits.rows; ++n) a.maximum.data()[n] = largest(a.shard, n);
}

void run(const Launch&, const CrossEntropySum& a) {
  for (std::int64_t n = 0; n < a.shard.logits.rows; ++n) {
    a.sum.data()[n] = sum_of_exponentials(a.shard, n, a.maximum.data()[n]);
    a.target_logit.data()[n] = logit_of(a.shard, n, a.targets.data()[n]);
  }
}

void run(const Launch&, const CrossEntropyForward& a) {
  for (std::int64_t n = 0; n < a.shard.logits.rows; ++n) {
    const std::int32_t target = a.targets.data()[n];
    const float maximum = largest(a.shard, n);
    const float sum = sum_of_exponentials(a.shard, n, maximum);
    a.maximum.data()[n] = maximum;
    a.sum.data()[n] = sum;
    const double loss = __builtin_log(static_cast<double>(sum)) + static_cast<double>(maximum) -
                        static_cast<double>(logit_of(a.shard, n, target));
    a.loss.data()[n] = target < 0 ? 0.0F : static_cast<float>(loss);
  }
}

void run(const Launch&, const CrossEntropyGradient& a) {
  Chunk x_buffer, y_buffer;
  for (std::int64_t n = 0; n < a.dlogits.rows; ++n) {
    const std::int32_t goal = a.targets.data()[n];
    const std::int64_t column = goal - a.shard.first_token;
    const float maximum = a.maximum.data()[n];
    const float scale = goal < 0 ? 0.0F : a.scale / a.sum.data()[n];
    for_each_chunk(a.dlogits.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.shard.logits, n, first, count, x_buffer);
      float* y = target(a.dlogits, n, first, y_buffer);
      const std::int64_t tokens =
          goal < 0 ? 0 : smaller(count, a.shard.tokens > first ? a.shard.tokens - first : 0);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < tokens; ++i) y[i] = scale * exponential(x[i] - maximum);
      for (std::int64_t i = tokens; i < count; ++i) y[i] = 0;
      if (goal >= 0 && column >= first && column < first + tokens) y[column - first] -= a.scale;
      store(a.dlogits, n, first, count, y);
    });
  }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
