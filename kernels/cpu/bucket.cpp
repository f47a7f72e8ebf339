#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

void run(const Launch&, const PackBucket& a) {
  const float scale = a.scale;
  Chunk x_buffer, y_buffer;
  for (std::size_t p = 0; p < a.parts.size(); ++p) {
    const BucketPart& part = a.parts.data()[p];
    for_each_chunk(part.vector.size, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(part.vector, first, count, x_buffer);
      float* y = target(a.bucket, part.offset + first, y_buffer);
      for (std::int64_t i = 0; i < count; ++i) y[i] = scale * x[i];
      store(a.bucket, part.offset + first, count, y);
    });
  }
}

void run(const Launch&, const UnpackBucket& a) {
  const float scale = a.scale;
  Chunk x_buffer, y_buffer, before_buffer;
  for (std::size_t p = 0; p < a.parts.size(); ++p) {
    const BucketPart& part = a.parts.data()[p];
    for_each_chunk(part.vector.size, [&](std::int64_t first, std::int64_t count) {
      const float* x = load(a.bucket, part.offset + first, count, x_buffer);
      float* y = target(part.vector, first, y_buffer);
      if (a.accumulate) {
        const float* before = load(part.vector, first, count, before_buffer);
        MESHWRIGHT_INDEPENDENT
        for (std::int64_t i = 0; i < count; ++i) y[i] = before[i] + scale * x[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) y[i] = scale * x[i];
      }
      store(part.vector, first, count, y);
    });
  }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
