#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// One head at a time, as floats; heads are at most kChunk wide (checked below).
void rotate(const Rotary& a, const float* table, const float* x, float* y) {
  const std::int64_t pairs = a.rotated / 2;
  const float direction = a.inverse ? -1.0F : 1.0F;
  const float* u = x + a.first;
  float* v = y + a.first;
  if (a.pairs == RotaryPairs::kHalves) {
    MESHWRIGHT_INDEPENDENT
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float cosine = table[2 * i], sine = direction * table[2 * i + 1];
      const float p = u[i], q = u[pairs + i];
      v[i] = p * cosine - q * sine;
      v[pairs + i] = p * sine + q * cosine;
    }
    return;
  }
  MESHWRIGHT_INDEPENDENT
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float cosine = table[2 * i], sine = direction * table[2 * i + 1];
    const float p = u[2 * i], q = u[2 * i + 1];
    v[2 * i] = p * cosine - q * sine;
    v[2 * i + 1] = p * sine + q * cosine;
  }
}

}  // namespace

void run(const Launch&, const Rotary& a) {
  MW_CHECK(a.head_size <= kChunk);
  Chunk x_buffer, y_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row) {
    const float* table = a.table.data() + std::int64_t{a.positions.data()[row]} * a.rotated;
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::int64_t column = head * a.head_size;
      const float* x = load(a.x, row, column, a.head_size, x_buffer);
      float* y = target(a.y, row, column, y_buffer);
      if (x != y)
        for (std::int64_t i = 0; i < a.head_size; ++i)
          if (i < a.first || i >= a.first + a.rotated) y[i] = x[i];
      rotate(a, table, x, y);
      store(a.y, row, column, a.head_size, y);
    }
  }
}

void run(const Launch&, const CopyHeads& a) {
  const bool sums = a.heads_y == 1, shares = a.heads_x == 1;
  Chunk x_buffer, y_buffer;
  for (std::int64_t row = 0; row < a.x.rows; ++row)
    for (std::int64_t head = 0; head < a.heads_y; ++head)
      for_each_chunk(a.count, [&](std::int64_t start, std::int64_t count) {
        const std::int64_t to = head * a.size_y + a.to + start;
        const std::int64_t first = sums || shares ? 0 : head;
        const std::int64_t last = sums ? a.heads_x : first + 1;
        float sum[kChunk] = {};
        for (std::int64_t from = first; from < last; ++from) {
          const float* x = load(a.x, row, from * a.size_x + a.from + start, count, x_buffer);
          for (std::int64_t i = 0; i < count; ++i) sum[i] += x[i];
        }
        float* y = target(a.y, row, to, y_buffer);
        for (std::int64_t i = 0; i < count; ++i) y[i] = sum[i];
        store(a.y, row, to, count, y);
      });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
