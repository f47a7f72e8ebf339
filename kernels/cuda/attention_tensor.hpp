// Shared-memory tiles and their products for forward and backward attention on tensor cores.
// Internal; for .cu files only.
//
// In the fragment layout of multiply() (instructions.hpp), two adjacent C tiles form one A
// operand without any exchange between lanes.
#pragma once

#include <cmath>

#include "kernels/cuda/attention.hpp"

namespace meshwright::cuda::tensor_cores {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kTile = 64;  ///< keys (queries) at a time
constexpr float kInfinity = INFINITY;
constexpr float kLog2E = 1.4426950408889634F;
using Bf16 = std::uint16_t;

// ---- tiles in shared memory ---------------------------------------------------------------

/// Rows of kSize bf16 in pieces of eight, swizzled: piece c of row r is stored at position
/// c ^ (r % 8), so that the same piece of eight rows lies in different banks.
template <int kSize>
__device__ inline Bf16* place(Bf16* tile, int row, int piece) {
  return tile + row * kSize + ((piece ^ (row & 7)) * kPack);
}

/// Starts copying rows [first, first + kRows) of one head into the tile; rows from `count` on and
/// columns from `size` on become zero. Rows that do not allow 16-byte copies are copied element by
/// element; these, too, have arrived after the block's next barrier.
template <int kRows, int kSize>
__device__ void load_async(Bf16* tile, const View& m, std::int64_t first, std::int64_t count,
                           std::int64_t column, int size) {
  constexpr int kPieces = kSize / kPack;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kThreads) {
    const int row = i / kPieces, piece = i % kPieces;
    Bf16* to = place<kSize>(tile, row, piece);
    const int left = size - piece * kPack;
    const Bf16* from =
        static_cast<const Bf16*>(m.data) + (first + row) * m.stride + column + piece * kPack;
    if (row < count && left >= kPack && m.wide) {
      copy_16_bytes(to, from);
      continue;
    }
    std::uint32_t words[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::uint32_t low = row < count && 2 * w < left ? from[2 * w] : 0U;
      const std::uint32_t high = row < count && 2 * w + 1 < left ? from[2 * w + 1] : 0U;
      words[w] = low | high << 16;
    }
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

/// A operand: 16 rows from `row` on, columns [16 k, 16 k + 16).
template <int kSize>
__device__ inline void load_a(std::uint32_t (&a)[4], Bf16* tile, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices(a, place<kSize>(tile, row + lane % 16, 2 * k + lane / 16));
}
/// B operands of two adjacent column tiles, from rows that are columns of the result (S = Q
/// K^T): rows [16 n, 16 n + 16), columns [16 k, 16 k + 16). b[0..1] and b[2..3].
template <int kSize>
__device__ inline void load_b(std::uint32_t (&b)[4], Bf16* tile, int n, int k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = 16 * n + lane / 16 * 8 + lane % 8;
  load_matrices(b, place<kSize>(tile, row, 2 * k + lane / 8 % 2));
}
/// The same from rows that are summed over (O = P V): rows [16 k, 16 k + 16), columns
/// [16 n, 16 n + 16).
template <int kSize>
__device__ inline void load_b_across(std::uint32_t (&b)[4], Bf16* tile, int n, int k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int row = 16 * k + lane / 8 % 2 * 8 + lane % 8;
  load_transposed(b, place<kSize>(tile, row, 2 * n + lane / 16));
}

/// Two adjacent C tiles as an A operand.
__device__ inline void as_operand(std::uint32_t (&a)[4], const float (&left)[4],
                                  const float (&right)[4]) {
  a[0] = to_bf16_pair(left[0], left[1]);
  a[1] = to_bf16_pair(left[2], left[3]);
  a[2] = to_bf16_pair(right[0], right[1]);
  a[3] = to_bf16_pair(right[2], right[3]);
}

/// c += A B^T over kSize: A 16 rows of a tile from `row` on, B all kTile rows of another.
template <int kSize>
__device__ inline void multiply_rows(float (&c)[kTile / 8][4], Bf16* a_tile, int row,
                                     Bf16* b_tile) {
#pragma unroll
  for (int k = 0; k < kSize / 16; ++k) {
    std::uint32_t a[4], b[4];
    load_a<kSize>(a, a_tile, row, k);
#pragma unroll
    for (int n = 0; n < kTile / 16; ++n) {
      load_b<kSize>(b, b_tile, n, k);
      multiply(c[2 * n], a, b[0], b[1]);
      multiply(c[2 * n + 1], a, b[2], b[3]);
    }
  }
}
/// c += P B over kTile: P 16 rows in registers, B kTile rows of a tile.
template <int kSize>
__device__ inline void multiply_across(float (&c)[kSize / 8][4], const float (&p)[kTile / 8][4],
                                       Bf16* b_tile) {
#pragma unroll
  for (int k = 0; k < kTile / 16; ++k) {
    std::uint32_t a[4], b[4];
    as_operand(a, p[2 * k], p[2 * k + 1]);
#pragma unroll
    for (int n = 0; n < kSize / 16; ++n) {
      load_b_across<kSize>(b, b_tile, n, k);
      multiply(c[2 * n], a, b[0], b[1]);
      multiply(c[2 * n + 1], a, b[2], b[3]);
    }
  }
}

/// Writes two adjacent elements of a result.
__device__ inline void write_pair(const View& to, std::int64_t row, std::int64_t column, int left,
                                  float first, float second, bool accumulate) {
  if (left <= 0) return;
  if (accumulate) {
    first += load_one(to, row, column);
    if (left > 1) second += load_one(to, row, column + 1);
  }
  if (to.wide && left > 1) {  // columns of pairs are even
    const std::int64_t i = row * to.stride + column;
    if (to.bf16)
      *reinterpret_cast<std::uint32_t*>(static_cast<Bf16*>(to.data) + i) =
          to_bf16_pair(first, second);
    else
      *reinterpret_cast<float2*>(static_cast<float*>(to.data) + i) = make_float2(first, second);
    return;
  }
  store_one(to, row, column, first);
  if (left > 1) store_one(to, row, column + 1, second);
}

/// Writes rows [first, first + count) of a result from 16 rows in registers, scaling each.
template <int kSize>
__device__ void write_rows(const View& to, std::int64_t first, int count, std::int64_t column,
                           int size, const float (&c)[kSize / 8][4], float scale_low,
                           float scale_high, bool accumulate) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int n = 0; n < kSize / 8; ++n) {
    const int d = 8 * n + 2 * t;
    if (g < count)
      write_pair(to, first + g, column + d, size - d, c[n][0] * scale_low, c[n][1] * scale_low,
                 accumulate);
    if (g + 8 < count)
      write_pair(to, first + g + 8, column + d, size - d, c[n][2] * scale_high,
                 c[n][3] * scale_high, accumulate);
  }
}

struct Work {
  AttentionShape s;
  View q, k, v, dout, out, dq, dk, dv;
  float* log_sum_exp_out;
  const float *log_sum_exp, *delta;
  bool accumulate;
};

/// The rows of a thread block: one head of one sequence. Blocks with the most work come first: late
/// queries see many keys, early keys are visible to many queries.
struct Block {
  std::int64_t sequence, head, first;
};
__device__ inline Block my_block(std::int64_t heads, std::int64_t rows, int height,
                                 bool late_first) {
  const std::int64_t tiles = (rows + height - 1) / height, index = blockIdx.x;
  const std::int64_t others = gridDim.x / tiles;  // sequences and heads
  const std::int64_t number = index % others, turn = index / others;
  return {number / heads, number % heads, (late_first ? tiles - 1 - turn : turn) * height};
}
__device__ inline int my_warp() { return static_cast<int>(threadIdx.x) / kWarp; }
__device__ inline int at_most(std::int64_t value, int limit) {
  return value < limit ? (value > 0 ? static_cast<int>(value) : 0) : limit;
}

/// True if all of `rows` queries see all of kTile keys: then no masking is needed.
__device__ inline bool all_visible(const AttentionShape& s, std::int64_t query, int rows,
                                   std::int64_t key) {
  if (key + kTile > s.keys || query + rows > s.queries) return false;
  if (!s.causal) return true;
  const std::int64_t at_query = s.first_query + query, at_key = s.first_key + key;
  return at_key + kTile - 1 <= at_query && at_key >= first_key_seen(s, at_query + rows - 1);
}

/// Sets the scores of masked keys to -infinity.
__device__ inline void hide(const AttentionShape& s, float (&scores)[kTile / 8][4],
                            std::int64_t query, std::int64_t key) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = query + g + (i / 2) * 8, column = key + 8 * n + 2 * t + i % 2;
      if (column >= s.keys || !sees(s, row, column)) scores[n][i] = -kInfinity;
    }
}

// ---- launches -----------------------------------------------------------------------------

constexpr std::int64_t kMaxSize = 128;

inline bool fits(const AttentionShape& s) {
  return s.key_size <= kMaxSize && s.value_size <= kMaxSize && s.scale > 0 &&
         s.dropout.mask.probability == 0 && s.softcap == 0;
}
inline bool is_bf16(const ConstMatrix& m) { return m.dtype == Dtype::kBf16; }

/// Heads start at multiples of their size: only multiples of eight keep the alignment of the rows.
inline View head_view(const ConstMatrix& m, std::int64_t size) {
  View view = view_of(m);
  view.wide = view.wide && size % kPack == 0;
  return view;
}

template <class Kernel>
void launch(Kernel kernel, std::int64_t blocks, int bytes, cudaStream_t stream, const Work& work) {
  MESHWRIGHT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<grid_of(blocks), kThreads, bytes, stream>>>(work);
  check_launch();
}

}  // namespace meshwright::cuda::tensor_cores
