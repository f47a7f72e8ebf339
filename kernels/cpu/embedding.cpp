#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

void run(const Launch&, const EmbeddingForward& a) {
  Chunk table_buffer, y_buffer, before_buffer;
  for (std::int64_t n = 0; n < a.y.rows; ++n) {
    const std::int64_t row = a.ids.data()[n] - a.first_row;
    const bool is_here = row >= 0 && row < a.table.rows;
    if (!is_here && a.accumulate) continue;
    for_each_chunk(a.y.columns, [&](std::int64_t first, std::int64_t count) {
      float* y = target(a.y, n, first, y_buffer);
      if (!is_here) {
        for (std::int64_t i = 0; i < count; ++i) y[i] = 0;
      } else {
        const float* x = load(a.table, row, first, count, table_buffer);
        const float* before = a.accumulate ? load(a.y, n, first, count, before_buffer) : nullptr;
        for (std::int64_t i = 0; i < count; ++i) y[i] = before == nullptr ? x[i] : before[i] + x[i];
      }
      store(a.y, n, first, count, y);
    });
  }
}

void run(const Launch&, const EmbeddingBackward& a) {
  Chunk buffer;
  for (std::int64_t n = 0; n < a.dy.rows; ++n) {
    const std::int64_t row = a.ids.data()[n] - a.first_row;
    if (row < 0 || row >= a.dtable.rows) continue;
    float* sum = static_cast<float*>(a.dtable.data) + row * a.dtable.stride;
    for_each_chunk(a.dy.columns, [&](std::int64_t first, std::int64_t count) {
      const float* dy = load(a.dy, n, first, count, buffer);
      for (std::int64_t i = 0; i < count; ++i) sum[first + i] += dy[i];
    });
  }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
