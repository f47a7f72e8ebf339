// Forward attention on tensor cores (FlashAttention-2, arXiv 2307.08691): bf16 operands, sums in
// fp32, mma.sync of 16 x 8 x 16, available since Ampere. P is rounded to bf16 before it is
// multiplied, as in every fused kernel of this kind.
//
// A block has 128 queries, a warp 32 of them, and loops over tiles of 64 keys; the next tile is
// copied into shared memory while one is multiplied.
#include "kernels/cuda/attention_tensor.hpp"

namespace meshwright::cuda {
namespace {
using namespace tensor_cores;  // NOLINT: used by this file and the backward one only

constexpr int kForwardRows = 128;  ///< queries of a block

/// The running softmax of 16 rows of a warp: rows g and g + 8 of a lane.
struct Running {
  float maximum[2], sum[2];
};

/// Turns scores into probabilities (times e^(running maximum)) and rescales the running sums.
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
    // No visible key yet: with any finite base e^(-infinity - base) is zero.
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
  const auto load_tile = [&](std::int64_t first, int stage) {
    load_async<kTile, kSize>(keys + stage * kTile * kSize, a.k, key_row + first, s.keys - first,
                             group * s.key_size, key_size);
    load_async<kTile, kSize>(values + stage * kTile * kSize, a.v, key_row + first, s.keys - first,
                             group * s.value_size, value_size);
    end_of_copies();
  };
  load_async<kForwardRows, kSize>(queries, a.q, query_row, rows, block.head * s.key_size, key_size);
  end_of_copies();
  if (range.first < range.end) load_tile(range.first, 0);
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
    __syncthreads();  // the tile has arrived; all are done with the stage that is filled next
    if (first + kTile < range.end) load_tile(first + kTile, stage ^ 1);
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
      const bool sees_any = !(sum == 0.0F);  // NaN propagates
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

template <int kSize>
void run_forward(cudaStream_t stream, const Work& work) {
  const AttentionShape& s = work.s;
  launch(forward_kernel<kSize>, s.sequences * s.heads * ceil_divide(s.queries, kForwardRows),
         forward_shared_bytes<kSize>(), stream, work);
}

}  // namespace

bool fits_tensor_cores(const AttentionForward& a) {
  return fits(a.shape) && is_bf16(a.q) && is_bf16(a.k) && is_bf16(a.v);
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

}  // namespace meshwright::cuda
