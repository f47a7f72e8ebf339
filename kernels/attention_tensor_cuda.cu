// Attention on tensor cores (FlashAttention-2, arXiv 2307.08691): bf16 operands, sums in fp32,
// mma.sync of 16 x 8 x 16, which every device since Ampere has. P and dS are rounded to bf16 before
// they are multiplied, as in every fused kernel of this kind.
//
// Forward: a block has 128 queries, a warp 32 of them, and runs over tiles of 64 keys; the next
// tile is on its way into shared memory while one is multiplied. Backward: one kernel for dQ
// (queries in rows), one for dK and dV (keys in rows). Scores are made twice, seven products
// instead of five; nothing is added by atomics, so results never change.
//
// Fragments of mma.m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16"), lane = 4 g + t:
//   A  a0 (g, 2t..)  a1 (g + 8, 2t..)  a2 (g, 2t + 8..)  a3 (g + 8, 2t + 8..)     [row, k]
//   B  b0 (2t.., g)  b1 (2t + 8.., g)                                            [k, column]
//   C  c0 c1 (g, 2t..)  c2 c3 (g + 8, 2t..)                                      [row, column]
// So two neighbouring C tiles are one A operand without any exchange between lanes.
#include <cmath>

#include "kernels/attention_cuda.hpp"

namespace meshwright::cuda {
namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kTile = 64;          ///< keys (queries) at a time
constexpr int kForwardRows = 128;  ///< queries of a block
constexpr float kInfinity = INFINITY;
constexpr float kLog2E = 1.4426950408889634F;
using Bf16 = std::uint16_t;

// ---- instructions -------------------------------------------------------------------------

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline void copy_16_bytes(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
}
__device__ inline void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all groups of copies but the last `kPending` of this thread have arrived.
template <int kPending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row_of_lane) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row_of_lane))
               : "memory");
}
__device__ inline void load_transposed(std::uint32_t (&r)[4], const void* row_of_lane) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row_of_lane))
               : "memory");
}
__device__ inline void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ---- tiles in shared memory ---------------------------------------------------------------

/// Rows of kSize bf16 in pieces of eight. Piece c of row r lies where piece c ^ (r % 8) would:
/// eight rows of one piece are then in different banks.
template <int kSize>
__device__ inline Bf16* place(Bf16* tile, int row, int piece) {
  return tile + row * kSize + ((piece ^ (row & 7)) * kPack);
}

/// Starts to bring rows [first, first + kRows) of one head; rows from `count` on and columns from
/// `size` on are zero. Where 16 bytes cannot be copied at once, elements are, and have arrived
/// after the block's next barrier all the same.
template <int kRows, int kSize>
__device__ void bring(Bf16* tile, const View& m, std::int64_t first, std::int64_t count,
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
/// B operands of two neighbouring column tiles, from rows that are the result's columns (S = Q
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

/// Two neighbouring C tiles as an A operand.
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

/// Two neighbouring elements of a result.
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

/// Rows [first, first + count) of a result from 16 rows in registers, each scaled.
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

/// A block's rows of one head of one sequence. Those with most to do come first: late queries see
/// many keys, early keys are seen by many queries.
struct Block {
  std::int64_t sequence, head, first;
};
__device__ Block my_block(std::int64_t heads, std::int64_t rows, int height, bool late_first) {
  const std::int64_t tiles = (rows + height - 1) / height, index = blockIdx.x;
  const std::int64_t others = gridDim.x / tiles;  // sequences and heads
  const std::int64_t number = index % others, turn = index / others;
  return {number / heads, number % heads, (late_first ? tiles - 1 - turn : turn) * height};
}
__device__ inline int my_warp() { return static_cast<int>(threadIdx.x) / kWarp; }
__device__ inline int at_most(std::int64_t value, int limit) {
  return value < limit ? (value > 0 ? static_cast<int>(value) : 0) : limit;
}

/// Whether all of `rows` queries see all of kTile keys: then nothing has to be compared.
__device__ bool all_visible(const AttentionShape& s, std::int64_t query, int rows,
                            std::int64_t key) {
  if (key + kTile > s.keys || query + rows > s.queries) return false;
  if (!s.causal) return true;
  const std::int64_t offset = s.first_query + query - s.first_key - key;  // of the first pair
  return offset - (kTile - 1) >= 0 && (s.window == 0 || offset + rows - 1 < s.window);
}

// ---- forward ------------------------------------------------------------------------------

/// The running softmax of 16 rows of a warp: rows g and g + 8 of a lane.
struct Running {
  float maximum[2], sum[2];
};

/// Scores become probabilities (times e^(running maximum)); what was summed shrinks.
template <int kSize>
__device__ inline void fold(float (&scores)[kTile / 8][4], float (&out)[kSize / 8][4], Running& run,
                            float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = -kInfinity;
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
      largest = fmaxf(largest, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, 2));
    const float before = run.maximum[half], now = fmaxf(before, largest);
    // Nothing seen yet: any finite number keeps e^(-infinity - it) zero.
    const float base = now == -kInfinity ? 0.0F : now * scale_log2;
    const float shrink = power_of_2(before * scale_log2 - base);
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        scores[n][i] = power_of_2(scores[n][i] * scale_log2 - base);
        sum += scores[n][i];
      }
    run.maximum[half] = now;
    run.sum[half] = run.sum[half] * shrink + sum;  // of this lane's columns
#pragma unroll
    for (int n = 0; n < kSize / 8; ++n) {
      out[n][2 * half] *= shrink;
      out[n][2 * half + 1] *= shrink;
    }
  }
}

/// Scores of keys that are not seen become -infinity.
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

template <int kSize>
constexpr int forward_shared_bytes() {
  return 2 * kSize * (kForwardRows + 2 * 2 * kTile);
}

template <int kSize>
__global__ void __launch_bounds__(kThreads, 2) forward_kernel(const __grid_constant__ Work a) {
  extern __shared__ __align__(128) Bf16 shared[];
  Bf16* queries = shared;
  Bf16* keys = queries + kForwardRows * kSize;  // two stages
  Bf16* values = keys + 2 * kTile * kSize;      // two stages
  const AttentionShape& s = a.s;
  const int key_size = static_cast<int>(s.key_size), value_size = static_cast<int>(s.value_size);
  const Block block = my_block(s.heads, s.queries, kForwardRows, true);
  const std::int64_t group = block.head / (s.heads / s.key_value_heads);
  const int rows = at_most(s.queries - block.first, kForwardRows);
  const Range range = keys_seen(s, block.first, block.first + rows - 1);
  const std::int64_t query_row = block.sequence * s.queries + block.first;
  const std::int64_t key_row = block.sequence * s.keys;
  const auto bring_tile = [&](std::int64_t first, int stage) {
    bring<kTile, kSize>(keys + stage * kTile * kSize, a.k, key_row + first, s.keys - first,
                        group * s.key_size, key_size);
    bring<kTile, kSize>(values + stage * kTile * kSize, a.v, key_row + first, s.keys - first,
                        group * s.value_size, value_size);
    end_of_copies();
  };
  bring<kForwardRows, kSize>(queries, a.q, query_row, rows, block.head * s.key_size, key_size);
  end_of_copies();
  if (range.first < range.end) bring_tile(range.first, 0);
  const int first_row = my_warp() * (kForwardRows / kWarps);  // 32 rows: two times 16
  float out[2][kSize / 8][4] = {};
  Running run[2];
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) run[m].maximum[half] = -kInfinity, run[m].sum[half] = 0;
  const float scale_log2 = s.scale * kLog2E;
  int stage = 0;
  for (std::int64_t first = range.first; first < range.end; first += kTile, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();  // the tile is there; all are done with the stage that is filled next
    if (first + kTile < range.end) bring_tile(first + kTile, stage ^ 1);
    Bf16* key_tile = keys + stage * kTile * kSize;
    Bf16* value_tile = values + stage * kTile * kSize;
    float scores[2][kTile / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kSize / 16; ++k) {
      std::uint32_t q[2][4], b[4];
      load_a<kSize>(q[0], queries, first_row, k);
      load_a<kSize>(q[1], queries, first_row + 16, k);
#pragma unroll
      for (int n = 0; n < kTile / 16; ++n) {
        load_b<kSize>(b, key_tile, n, k);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply(scores[m][2 * n], q[m], b[0], b[1]);
          multiply(scores[m][2 * n + 1], q[m], b[2], b[3]);
        }
      }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const std::int64_t query = block.first + first_row + 16 * m;
      if (!all_visible(s, query, 16, first)) hide(s, scores[m], query, first);
      fold<kSize>(scores[m], out[m], run[m], scale_log2);
    }
#pragma unroll
    for (int k = 0; k < kTile / 16; ++k) {
      std::uint32_t p[2][4], b[4];
#pragma unroll
      for (int m = 0; m < 2; ++m) as_operand(p[m], scores[m][2 * k], scores[m][2 * k + 1]);
#pragma unroll
      for (int n = 0; n < kSize / 16; ++n) {
        load_b_across<kSize>(b, value_tile, n, k);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          multiply(out[m][2 * n], p[m], b[0], b[1]);
          multiply(out[m][2 * n + 1], p[m], b[2], b[3]);
        }
      }
    }
  }
  wait_for_copies<0>();
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    const int row = first_row + 16 * m;
    float inverse[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = run[m].sum[half];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const bool sees_any = !(sum == 0.0F);  // NaN goes on
      inverse[half] = sees_any ? 1.0F / sum : 0.0F;
      const int mine = row + g + 8 * half;
      if (t == 0 && mine < rows)
        a.log_sum_exp_out[statistic_of(s, block.sequence, block.head, block.first + mine)] =
            sees_any ? run[m].maximum[half] * s.scale + logf(sum) : -kInfinity;
    }
    write_rows<kSize>(a.out, query_row + row, rows - row, block.head * s.value_size, value_size,
                      out[m], inverse[0], inverse[1], false);
  }
}

// ---- backward -----------------------------------------------------------------------------

/// P = e^(scale S - log_sum_exp) into `scores` and P (dP - delta) into `dscores`, zero where
/// unseen. The statistics are those of the queries, which are the rows or the columns of the tile;
/// log_sum_exp is given times log2 e. `compares`: some pairs may not be visible.
template <bool kRowsAreQueries>
__device__ inline void differentiate(const AttentionShape& s, float (&scores)[kTile / 8][4],
                                     float (&dscores)[kTile / 8][4], std::int64_t first_row,
                                     std::int64_t first_column, bool compares,
                                     const float* log_sum_exp, const float* delta) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, g = lane / 4, t = lane % 4;
  const float scale_log2 = s.scale * kLog2E;
#pragma unroll
  for (int n = 0; n < kTile / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + (i / 2) * 8, column = 8 * n + 2 * t + i % 2;
      const int statistic = kRowsAreQueries ? row : column;
      float p = power_of_2(scores[n][i] * scale_log2 - log_sum_exp[statistic]);
      if (compares) {
        const std::int64_t query = kRowsAreQueries ? first_row + row : first_column + column;
        const std::int64_t key = kRowsAreQueries ? first_column + column : first_row + row;
        if (query >= s.queries || key >= s.keys || !sees(s, query, key)) p = 0;
      }
      scores[n][i] = p;
      dscores[n][i] = p == 0.0F ? 0.0F : p * (dscores[n][i] - delta[statistic]);
    }
}

/// log_sum_exp (times log2 e) and delta of kTile queries; zero beyond the last.
__device__ inline void bring_statistics(const Work& a, float* log_sum_exp, float* delta,
                                        std::int64_t sequence, std::int64_t head,
                                        std::int64_t first) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads) {
    const bool is_query = first + i < a.s.queries;
    const std::int64_t statistic = statistic_of(a.s, sequence, head, is_query ? first + i : 0);
    log_sum_exp[i] = is_query ? a.log_sum_exp[statistic] * kLog2E : 0.0F;
    delta[i] = is_query ? a.delta[statistic] : 0.0F;
  }
}

template <int kSize>
constexpr int backward_shared_bytes() {
  return 2 * kSize * 6 * kTile + 4 * 4 * kTile;
}

/// dQ of 64 queries: runs over tiles of keys.
template <int kSize>
__global__ void __launch_bounds__(kThreads, 2)
    queries_backward_kernel(const __grid_constant__ Work a) {
  extern __shared__ __align__(128) Bf16 shared[];
  Bf16* queries = shared;
  Bf16* douts = queries + kTile * kSize;
  Bf16* keys = douts + kTile * kSize;       // two stages
  Bf16* values = keys + 2 * kTile * kSize;  // two stages
  float* log_sum_exp = reinterpret_cast<float*>(values + 2 * kTile * kSize);
  float* delta = log_sum_exp + kTile;
  const AttentionShape& s = a.s;
  const int key_size = static_cast<int>(s.key_size), value_size = static_cast<int>(s.value_size);
  const Block block = my_block(s.heads, s.queries, kTile, true);
  const std::int64_t group = block.head / (s.heads / s.key_value_heads);
  const int rows = at_most(s.queries - block.first, kTile);
  const Range range = keys_seen(s, block.first, block.first + rows - 1);
  const std::int64_t query_row = block.sequence * s.queries + block.first;
  const std::int64_t key_row = block.sequence * s.keys;
  const auto bring_tile = [&](std::int64_t first, int stage) {
    bring<kTile, kSize>(keys + stage * kTile * kSize, a.k, key_row + first, s.keys - first,
                        group * s.key_size, key_size);
    bring<kTile, kSize>(values + stage * kTile * kSize, a.v, key_row + first, s.keys - first,
                        group * s.value_size, value_size);
    end_of_copies();
  };
  bring<kTile, kSize>(queries, a.q, query_row, rows, block.head * s.key_size, key_size);
  bring<kTile, kSize>(douts, a.dout, query_row, rows, block.head * s.value_size, value_size);
  bring_statistics(a, log_sum_exp, delta, block.sequence, block.head, block.first);
  end_of_copies();
  if (range.first < range.end) bring_tile(range.first, 0);
  const int first_row = my_warp() * 16;
  float dq[kSize / 8][4] = {};
  int stage = 0;
  for (std::int64_t first = range.first; first < range.end; first += kTile, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (first + kTile < range.end) bring_tile(first + kTile, stage ^ 1);
    Bf16* key_tile = keys + stage * kTile * kSize;
    float scores[kTile / 8][4] = {}, dscores[kTile / 8][4] = {};
    multiply_rows<kSize>(scores, queries, first_row, key_tile);
    multiply_rows<kSize>(dscores, douts, first_row, values + stage * kTile * kSize);
    const std::int64_t query = block.first + first_row;
    differentiate<true>(s, scores, dscores, query, first, !all_visible(s, query, 16, first),
                        log_sum_exp + first_row, delta + first_row);
    multiply_across<kSize>(dq, dscores, key_tile);
  }
  wait_for_copies<0>();
  write_rows<kSize>(a.dq, query_row + first_row, rows - first_row, block.head * s.key_size,
                    key_size, dq, s.scale, s.scale, a.accumulate);
}

/// dK and dV of 64 keys: runs over tiles of queries of all heads that share them. Scores are
/// transposed: rows are keys.
template <int kSize>
__global__ void __launch_bounds__(kThreads, 2)
    keys_backward_kernel(const __grid_constant__ Work a) {
  extern __shared__ __align__(128) Bf16 shared[];
  Bf16* keys = shared;
  Bf16* values = keys + kTile * kSize;
  Bf16* queries = values + kTile * kSize;                                    // two stages
  Bf16* douts = queries + 2 * kTile * kSize;                                 // two stages
  float* log_sum_exp = reinterpret_cast<float*>(douts + 2 * kTile * kSize);  // two stages
  float* delta = log_sum_exp + 2 * kTile;                                    // two stages
  const AttentionShape& s = a.s;
  const int key_size = static_cast<int>(s.key_size), value_size = static_cast<int>(s.value_size);
  const Block block = my_block(s.key_value_heads, s.keys, kTile, false);
  const std::int64_t sharing = s.heads / s.key_value_heads;
  const int rows = at_most(s.keys - block.first, kTile);
  const Range range = queries_seeing(s, block.first, block.first + rows - 1);
  const std::int64_t key_row = block.sequence * s.keys + block.first;
  const std::int64_t tiles_of_head = (range.end - range.first + kTile - 1) / kTile;
  const std::int64_t tiles = sharing * tiles_of_head;
  const auto bring_tile = [&](std::int64_t number, int stage) {
    const std::int64_t head = block.head * sharing + number / tiles_of_head;
    const std::int64_t first = range.first + number % tiles_of_head * kTile;
    const std::int64_t query_row = block.sequence * s.queries + first;
    bring<kTile, kSize>(queries + stage * kTile * kSize, a.q, query_row, s.queries - first,
                        head * s.key_size, key_size);
    bring<kTile, kSize>(douts + stage * kTile * kSize, a.dout, query_row, s.queries - first,
                        head * s.value_size, value_size);
    bring_statistics(a, log_sum_exp + stage * kTile, delta + stage * kTile, block.sequence, head,
                     first);
    end_of_copies();
  };
  bring<kTile, kSize>(keys, a.k, key_row, rows, block.head * s.key_size, key_size);
  bring<kTile, kSize>(values, a.v, key_row, rows, block.head * s.value_size, value_size);
  end_of_copies();
  if (tiles > 0) bring_tile(0, 0);
  const int first_row = my_warp() * 16;
  float dk[kSize / 8][4] = {}, dv[kSize / 8][4] = {};
  int stage = 0;
  for (std::int64_t number = 0; number < tiles; ++number, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (number + 1 < tiles) bring_tile(number + 1, stage ^ 1);
    Bf16* query_tile = queries + stage * kTile * kSize;
    Bf16* dout_tile = douts + stage * kTile * kSize;
    const std::int64_t query = range.first + number % tiles_of_head * kTile;
    const std::int64_t key = block.first + first_row;
    float scores[kTile / 8][4] = {}, dscores[kTile / 8][4] = {};
    multiply_rows<kSize>(scores, keys, first_row, query_tile);
    multiply_rows<kSize>(dscores, values, first_row, dout_tile);
    // Queries from `query` on are all there and see all keys of the block, or every pair is asked.
    differentiate<false>(s, scores, dscores, key, query, !all_visible(s, query, kTile, block.first),
                         log_sum_exp + stage * kTile, delta + stage * kTile);
    multiply_across<kSize>(dv, scores, dout_tile);
    multiply_across<kSize>(dk, dscores, query_tile);
  }
  wait_for_copies<0>();
  write_rows<kSize>(a.dk, key_row + first_row, rows - first_row, block.head * s.key_size, key_size,
                    dk, s.scale, s.scale, a.accumulate);
  write_rows<kSize>(a.dv, key_row + first_row, rows - first_row, block.head * s.value_size,
                    value_size, dv, 1.0F, 1.0F, a.accumulate);
}

// ---- launches -----------------------------------------------------------------------------

constexpr std::int64_t kMostSize = 128;

bool fits(const AttentionShape& s) {
  return s.key_size <= kMostSize && s.value_size <= kMostSize && s.scale > 0 &&
         s.dropout.mask.probability == 0;
}
bool is_bf16(const ConstMatrix& m) { return m.dtype == Dtype::kBf16; }

/// Heads start at multiples of their size: only multiples of eight keep the alignment of the rows.
View head_view(const ConstMatrix& m, std::int64_t size) {
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

template <int kSize>
void run_forward(cudaStream_t stream, const Work& work) {
  const AttentionShape& s = work.s;
  launch(forward_kernel<kSize>, s.sequences * s.heads * steps_of(s.queries, kForwardRows),
         forward_shared_bytes<kSize>(), stream, work);
}
template <int kSize>
void run_backward(cudaStream_t stream, const Work& work) {
  const AttentionShape& s = work.s;
  if (s.queries > 0)
    launch(queries_backward_kernel<kSize>, s.sequences * s.heads * steps_of(s.queries, kTile),
           backward_shared_bytes<kSize>(), stream, work);
  if (s.keys > 0)
    launch(keys_backward_kernel<kSize>, s.sequences * s.key_value_heads * steps_of(s.keys, kTile),
           backward_shared_bytes<kSize>(), stream, work);
}

}  // namespace

bool fits_tensor_cores(const AttentionForward& a) {
  return fits(a.shape) && is_bf16(a.q) && is_bf16(a.k) && is_bf16(a.v);
}
bool fits_tensor_cores(const AttentionBackward& a) {
  return fits(a.shape) && is_bf16(a.q) && is_bf16(a.k) && is_bf16(a.v) && is_bf16(a.dout);
}

void run_on_tensor_cores(cudaStream_t stream, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  Work work{};
  work.s = s;
  work.q = head_view(a.q, s.key_size), work.k = head_view(a.k, s.key_size);
  work.v = head_view(a.v, s.value_size), work.out = head_view(a.out, s.value_size);
  work.log_sum_exp_out = a.log_sum_exp.data();
  if (s.key_size <= 64 && s.value_size <= 64)
    run_forward<64>(stream, work);
  else
    run_forward<128>(stream, work);
}

void run_on_tensor_cores(cudaStream_t stream, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  Work work{};
  work.s = s;
  work.q = head_view(a.q, s.key_size), work.k = head_view(a.k, s.key_size);
  work.v = head_view(a.v, s.value_size), work.dout = head_view(a.dout, s.value_size);
  work.dq = head_view(a.dq, s.key_size), work.dk = head_view(a.dk, s.key_size);
  work.dv = head_view(a.dv, s.value_size);
  work.log_sum_exp = a.log_sum_exp.data();
  work.delta = a.delta.data();
  work.accumulate = a.accumulate;
  if (s.key_size <= 64 && s.value_size <= 64)
    run_backward<64>(stream, work);
  else
    run_backward<128>(stream, work);
}

}  // namespace meshwright::cuda
