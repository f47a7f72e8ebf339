#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

static_assert(kChunk % kFloat8Block == 0);  // no block straddles two chunks

void run(const Launch&, const RoundToFloat8& a) {
  Chunk x_buffer, y_buffer;
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for_each_chunk(a.x.columns, [&](std::int64_t chunk, std::int64_t size) {
      const float* x = load(a.x, r, chunk, size, x_buffer);
      float* y = target(a.y, r, chunk, y_buffer);
      for (std::int64_t first = 0; first < size; first += kFloat8Block) {
        const std::int64_t count = smaller(kFloat8Block, size - first);
        const float largest = larger(maximum_of(count,
                                                [&](std::int64_t i) {
                                                  const float v = x[first + i];
                                                  return v < 0 ? -v : v;
                                                }),
                                     0.0F);
        const float scale = largest > 0 ? largest / kLargestFloat8 : 1.0F;
        MESHWRIGHT_INDEPENDENT
        for (std::int64_t i = first; i < first + count; ++i)
          y[i] = rounded_to_e4m3(x[i] / scale) * scale;
      }
      store(a.y, r, chunk, size, y);
    });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
