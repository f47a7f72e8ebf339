#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

/// One warp per block of 128 elements: four per lane.
__global__ void __launch_bounds__(kMapThreads)
    float8_kernel(const View x, const View y, const std::int64_t rows, const std::int64_t columns) {
  const std::int64_t blocks_of_row = (columns + kFloat8Block - 1) / kFloat8Block;
  const std::int64_t index =
      static_cast<std::int64_t>(blockIdx.x) * (kMapThreads / kWarp) + threadIdx.x / kWarp;
  const std::int64_t row = index / blocks_of_row;
  if (row >= rows) return;
  const std::int64_t first = index % blocks_of_row * kFloat8Block;
  constexpr int kEach = static_cast<int>(kFloat8Block) / kWarp;
  float values[kEach], largest = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const std::int64_t column = first + i * kWarp + threadIdx.x % kWarp;
    values[i] = column < columns ? load_one(x, row, column) : 0.0F;
    largest = fmaxf(largest, fabsf(values[i]));
  }
  largest = warp_max(largest);
  const float scale = largest / kLargestFloat8;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const std::int64_t column = first + i * kWarp + threadIdx.x % kWarp;
    if (column < columns)
      store_one(y, row, column,
                largest == 0.0F ? 0.0F : scale * rounded_to_e4m3(values[i] / scale));
  }
}

}  // namespace

void run(const Launch& launch, const RoundToFloat8& a) {
  if (a.x.empty()) return;
  const std::int64_t warps = a.x.rows * ceil_divide(a.x.columns, kFloat8Block);
  float8_kernel<<<grid_of(ceil_divide(warps, kMapThreads / kWarp)), kMapThreads, 0,
                  stream_of(launch)>>>(view_of(a.x), view_of(ConstMatrix(a.y)), a.x.rows,
                                       a.x.columns);
  check_launch();
}

}  // namespace meshwright::cuda
