// Backward attention on tensor cores: one kernel for dQ (queries in rows), one for dK and dV (keys
// in rows). Scores are computed twice, seven products instead of five; without atomics, so results
// are deterministic. dS is rounded to bf16 before it is multiplied.
#include "kernels/cuda/attention_tensor.hpp"

namespace meshwright::cuda {
namespace {
using namespace tensor_cores;  // NOLINT: used by this file and the forward one only

/// P = e^(scale S - log_sum_exp) into `scores` and P (dP - delta) into `dscores`, zero where
/// masked. The statistics are those of the queries, which are the rows or the columns of the tile;
/// log_sum_exp is given times log2 e. `compares`: some pairs may be masked.
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
__device__ inline void load_statistics(const Work& a, float* log_sum_exp, float* delta,
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

/// dQ of 64 queries: loops over tiles of keys.
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
  const auto load_tile = [&](std::int64_t first, int stage) {
    load_async<kTile, kSize>(keys + stage * kTile * kSize, a.k, key_row + first, s.keys - first,
                             group * s.key_size, key_size);
    load_async<kTile, kSize>(values + stage * kTile * kSize, a.v, key_row + first, s.keys - first,
                             group * s.value_size, value_size);
    end_of_copies();
  };
  load_async<kTile, kSize>(queries, a.q, query_row, rows, block.head * s.key_size, key_size);
  load_async<kTile, kSize>(douts, a.dout, query_row, rows, block.head * s.value_size, value_size);
  load_statistics(a, log_sum_exp, delta, block.sequence, block.head, block.first);
  end_of_copies();
  if (range.first < range.end) load_tile(range.first, 0);
  const int first_row = my_warp() * 16;
  float dq[kSize / 8][4] = {};
  int stage = 0;
  for (std::int64_t first = range.first; first < range.end; first += kTile, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (first + kTile < range.end) load_tile(first + kTile, stage ^ 1);
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

/// dK and dV of 64 keys: loops over tiles of queries of all heads that share them. Scores are
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
  const auto load_tile = [&](std::int64_t number, int stage) {
    const std::int64_t head = block.head * sharing + number / tiles_of_head;
    const std::int64_t first = range.first + number % tiles_of_head * kTile;
    const std::int64_t query_row = block.sequence * s.queries + first;
    load_async<kTile, kSize>(queries + stage * kTile * kSize, a.q, query_row, s.queries - first,
                             head * s.key_size, key_size);
    load_async<kTile, kSize>(douts + stage * kTile * kSize, a.dout, query_row, s.queries - first,
                             head * s.value_size, value_size);
    load_statistics(a, log_sum_exp + stage * kTile, delta + stage * kTile, block.sequence, head,
                    first);
    end_of_copies();
  };
  load_async<kTile, kSize>(keys, a.k, key_row, rows, block.head * s.key_size, key_size);
  load_async<kTile, kSize>(values, a.v, key_row, rows, block.head * s.value_size, value_size);
  end_of_copies();
  if (tiles > 0) load_tile(0, 0);
  const int first_row = my_warp() * 16;
  float dk[kSize / 8][4] = {}, dv[kSize / 8][4] = {};
  int stage = 0;
  for (std::int64_t number = 0; number < tiles; ++number, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();
    if (number + 1 < tiles) load_tile(number + 1, stage ^ 1);
    Bf16* query_tile = queries + stage * kTile * kSize;
    Bf16* dout_tile = douts + stage * kTile * kSize;
    const std::int64_t query = range.first + number % tiles_of_head * kTile;
    const std::int64_t key = block.first + first_row;
    float scores[kTile / 8][4] = {}, dscores[kTile / 8][4] = {};
    multiply_rows<kSize>(scores, keys, first_row, query_tile);
    multiply_rows<kSize>(dscores, values, first_row, dout_tile);
    // If not all queries of the tile exist and see all keys of the block, every pair is tested.
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

template <int kSize>
void run_backward(cudaStream_t stream, const Work& work) {
  const AttentionShape& s = work.s;
  if (s.queries > 0)
    launch(queries_backward_kernel<kSize>, s.sequences * s.heads * ceil_divide(s.queries, kTile),
           backward_shared_bytes<kSize>(), stream, work);
  if (s.keys > 0)
    launch(keys_backward_kernel<kSize>,
           s.sequences * s.key_value_heads * ceil_divide(s.keys, kTile),
           backward_shared_bytes<kSize>(), stream, work);
}

}  // namespace

bool fits_tensor_cores(const AttentionBackward& a) {
  return fits(a.shape) && is_bf16(a.q) && is_bf16(a.k) && is_bf16(a.v) && is_bf16(a.dout);
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
