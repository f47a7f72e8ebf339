#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

void run(const Launch&, const DropoutForward& a) {
  const std::uint32_t threshold = dropout_threshold(a.mask.probability);
  const float scale = 1 / (1 - a.mask.probability);
  Chunk x_buffer, y_buffer;
  for (std::int64_t r = 0; r < a.x.rows; ++r) {
    const std::uint32_t row = dropout_row(a.mask.key, a.rows.data()[r]);
    for_each_chunk(a.x.columns, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.x, r, first, count, x_buffer);
      float* y = target(a.y, r, first, y_buffer);
      std::uint8_t* kept = a.kept.data() + r * a.x.columns + first;
      for (std::int64_t i = 0; i < count; ++i) kept[i] = is_kept(row, first + i, threshold) ? 1 : 0;
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) y[i] = kept[i] != 0 ? scale * x[i] : 0.0F;
      store(a.y, r, first, count, y);
    });
  }
}

void run(const Launch&, const DropoutBackward& a) {
  const float scale = 1 / (1 - a.probability);
  Chunk dy_buffer, dx_buffer;
  for (std::int64_t r = 0; r < a.dy.rows; ++r)
    for_each_chunk(a.dy.columns, [&](std::int64_t first, std::int64_t count) {
      const float* dy = load(a.dy, r, first, count, dy_buffer);
      float* dx = target(a.dx, r, first, dx_buffer);
      const std::uint8_t* kept = a.kept.data() + r * a.dy.columns + first;
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) dx[i] = kept[i] != 0 ? scale * dy[i] : 0.0F;
      store(a.dx, r, first, count, dx);
    });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
