#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

struct Drop {
  std::uint64_t key;
  std::uint32_t threshold;
  float factor;
  const std::int64_t* rows;
  std::uint8_t* kept;
  std::int64_t columns;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
    const std::uint32_t row = dropout_row(key, rows[at.row]);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const bool keeps = is_kept(row, at.column + i, threshold);
      out[0].v[i] = keeps ? in[0].v[i] * factor : 0.0F;
      if (i < at.count) kept[at.row * columns + at.column + i] = keeps ? 1 : 0;
    }
  }
};

struct DropGradient {
  float factor;
  const std::uint8_t* kept;
  std::int64_t columns;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      out[0].v[i] =
          i < at.count && kept[at.row * columns + at.column + i] != 0 ? in[0].v[i] * factor : 0.0F;
  }
};

}  // namespace

void run(const Launch& launch, const DropoutForward& a) {
  if (a.x.empty()) return;
  const Drop drop{a.mask.key,
                  dropout_threshold(a.mask.probability),
                  1 / (1 - a.mask.probability),
                  a.rows.data(),
                  a.kept.data(),
                  a.x.columns};
  map<1, 1>(stream_of(launch), {a.x}, {a.y}, drop, true);
}

void run(const Launch& launch, const DropoutBackward& a) {
  const DropGradient drop{1 / (1 - a.probability), a.kept.data(), a.dy.columns};
  map<1, 1>(stream_of(launch), {a.dy}, {a.dx}, drop, true);
}

}  // namespace meshwright::cuda
