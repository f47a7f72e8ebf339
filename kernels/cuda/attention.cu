#include "kernels/cuda/attention_lanes.hpp"

namespace meshwright::cuda {
namespace {

struct ForwardWork {
  AttentionShape s;
  Keeping keeping;
  View q, k, v, out;
  float* log_sum_exp;
};

__global__ void __launch_bounds__(kThreads) forward_kernel(const ForwardWork a) {
  extern __shared__ float shared[];
  const AttentionShape& s = a.s;
  const int key_size = static_cast<int>(s.key_size), value_size = static_cast<int>(s.value_size);
  float* queries = shared;
  float* keys = queries + kBlockRows * (key_size + 1);
  float* values = keys + kTile * (key_size + 1);
  const Block block = my_block(s.heads, s.queries);
  const std::int64_t group = block.head / (s.heads / s.key_value_heads);
  const std::int64_t rows =
      s.queries - block.first < kBlockRows ? s.queries - block.first : kBlockRows;
  load_rows(queries, a.q, block.sequence * s.queries + block.first, rows, kBlockRows,
            block.head * s.key_size, key_size);
  float acc[kRows][kChunks] = {}, maximum[kRows], sum[kRows] = {};
  std::uint32_t drop_row[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    maximum[r] = -kInfinity;
    drop_row[r] =
        kept_row(s, a.keeping, block.sequence, block.head, block.first + my_first_row() + r);
  }
  const Range range = keys_seen(s, block.first, block.first + rows - 1);
  for (std::int64_t first = range.first; first < range.end; first += kTile) {
    __syncthreads();
    const std::int64_t count = s.keys - first;
    const std::int64_t key_row = block.sequence * s.keys + first;
    load_rows(keys, a.k, key_row, count, kTile, group * s.key_size, key_size);
    load_rows(values, a.v, key_row, count, kTile, group * s.value_size, value_size);
    __syncthreads();
    const std::int64_t key = first + my_lane();
    float weight[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = my_first_row() + r;
      const bool visible = key < s.keys && row < rows && sees(s, block.first + row, key);
      const float score =
          capped_score(s, s.scale * dot(queries + row * (key_size + 1),
                                        keys + my_lane() * (key_size + 1), key_size));
      const float now = fmaxf(maximum[r], warp_max(visible ? score : -kInfinity));
      const float p = visible ? expf(score - now) : 0.0F;
      const float shrink = maximum[r] == -kInfinity ? 0.0F : expf(maximum[r] - now);
      sum[r] = sum[r] * shrink + warp_sum(p);
      maximum[r] = now;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) acc[r][c] *= shrink;
      weight[r] = p * kept_factor(s, a.keeping, drop_row[r], key);
    }
    add_weighted(acc, weight, values, value_size);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = my_first_row() + r;
    if (row >= rows) continue;
    const bool sees_any = !(sum[r] == 0.0F);  // NaN propagates
    const std::int64_t query = block.first + row;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int d = c * kWarp + my_lane();
      if (d < value_size)
        store_one(a.out, block.sequence * s.queries + query, block.head * s.value_size + d,
                  sees_any ? acc[r][c] / sum[r] : 0.0F);
    }
    if (my_lane() == 0)
      a.log_sum_exp[statistic_of(s, block.sequence, block.head, query)] =
          sees_any ? maximum[r] + logf(sum[r]) : -kInfinity;
  }
}

}  // namespace

void run(const Launch& launch, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  if (s.sequences == 0 || s.queries == 0) return;
#ifdef MESHWRIGHT_CUDNN
  if (run_by_cudnn(stream_of(launch), a)) return;
#endif
  if (fits_tensor_cores(a)) return run_on_tensor_cores(stream_of(launch), a);
  const ForwardWork work{s,
                         keeping_of(s),
                         view_of(a.q),
                         view_of(a.k),
                         view_of(a.v),
                         view_of(ConstMatrix(a.out)),
                         a.log_sum_exp.data()};
  const int bytes = shared_bytes(forward_kernel, s, kBlockRows + kTile, kTile);
  const std::int64_t blocks = s.sequences * s.heads * ceil_divide(s.queries, kBlockRows);
  forward_kernel<<<grid_of(blocks), kThreads, bytes, stream_of(launch)>>>(work);
  check_launch();
}

}  // namespace meshwright::cuda
