/// Attention in fp32 arithmetic for every shape: used where tensor cores cannot be, and to check
/// their results. A warp has kRows queries (or keys), its lanes the keys (queries) of a tile that
/// the block's warps share. Internal; for .cu files only.
#pragma once

#include <cmath>

#include "kernels/cuda/attention.hpp"

namespace meshwright::cuda {

constexpr int kWarps = 8, kRows = 4, kThreads = kWarps * kWarp;
constexpr int kBlockRows = kWarps * kRows;  ///< queries (keys) of a block
constexpr int kTile = kWarp;                ///< keys (queries) at a time: one per lane
constexpr int kMaxSize = 256, kChunks = kMaxSize / kWarp;
constexpr float kInfinity = INFINITY;

/// Rows [first, first + count) of one head as floats in shared memory, `size + 1` apart to avoid
/// bank conflicts between lanes on adjacent rows; rows beyond are zero.
__device__ inline void load_rows(float* to, const View& m, std::int64_t first, std::int64_t count,
                                 int rows, std::int64_t column, int size) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * size; i += kThreads) {
    const int row = i / size, d = i % size;
    to[row * (size + 1) + d] = row < count ? load_one(m, first + row, column + d) : 0.0F;
  }
}

__device__ inline float dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int d = 0; d < size; ++d) sum += a[d] * b[d];
  return sum;
}

__device__ inline float capped_score(const AttentionShape& s, float score) {
  return s.softcap > 0 ? s.softcap * tanhf(score / s.softcap) : score;
}

/// Position of a block: rows [first, first + kBlockRows) of one head of one sequence.
struct Block {
  std::int64_t sequence, head, first;
};
__device__ inline Block my_block(std::int64_t heads, std::int64_t rows) {
  const std::int64_t tiles = (rows + kBlockRows - 1) / kBlockRows, index = blockIdx.x;
  const std::int64_t number = index / tiles;
  return {number / heads, number % heads, index % tiles * kBlockRows};
}
__device__ inline int my_lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int my_first_row() { return static_cast<int>(threadIdx.x) / kWarp * kRows; }

/// acc[r] += sum over lanes of weight_r * rows[lane], lanes over columns.
__device__ inline void add_weighted(float (&acc)[kRows][kChunks], const float (&weight)[kRows],
                                    const float* rows, int size) {
  for (int j = 0; j < kTile; ++j) {
    float w[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) w[r] = __shfl_sync(0xFFFFFFFFU, weight[r], j);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int d = c * kWarp + my_lane();
      if (d >= size) break;
      const float v = rows[j * (size + 1) + d];
#pragma unroll
      for (int r = 0; r < kRows; ++r) acc[r][c] += w[r] * v;
    }
  }
}

/// Bytes of shared memory for so many rows of keys and values; allows the kernel more than 48 KiB.
template <class Kernel>
int shared_bytes(Kernel kernel, const AttentionShape& s, std::int64_t key_rows,
                 std::int64_t value_rows) {
  MW_CHECK(s.key_size <= kMaxSize && s.value_size <= kMaxSize);
  const auto bytes =
      static_cast<int>(4 * (key_rows * (s.key_size + 1) + value_rows * (s.value_size + 1)));
  MESHWRIGHT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  return bytes;
}

}  // namespace meshwright::cuda
