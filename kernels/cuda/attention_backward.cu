#include "kernels/cuda/attention_lanes.hpp"

namespace meshwright::cuda {
namespace {

struct BackwardWork {
  AttentionShape s;
  Keeping keeping;
  View q, k, v, dout, dq, dk, dv;
  const float *log_sum_exp, *delta;
  bool accumulate;
};

/// P after dropout, and dS = scale P (kept dP - delta), of one query and key.
struct Slope {
  float kept_probability, dscore;
};
__device__ Slope slope_of(const BackwardWork& a, float product, float dproduct, float log_sum_exp,
                          float delta, float kept, bool visible) {
  if (!visible) return {0.0F, 0.0F};
  const float score = capped_score(a.s, a.s.scale * product);
  const float capped = a.s.softcap > 0 ? score / a.s.softcap : 0.0F;
  const float p = expf(score - log_sum_exp);
  return {p * kept, a.s.scale * p * (kept * dproduct - delta) * (1.0F - capped * capped)};
}

__device__ void write(const View& to, std::int64_t row, std::int64_t column, float value,
                      bool accumulate) {
  store_one(to, row, column, accumulate ? value + load_one(to, row, column) : value);
}

/// dQ: queries in rows, keys over lanes.
__global__ void __launch_bounds__(kThreads) queries_backward_kernel(const BackwardWork a) {
  extern __shared__ float shared[];
  const AttentionShape& s = a.s;
  const int key_size = static_cast<int>(s.key_size), value_size = static_cast<int>(s.value_size);
  float* queries = shared;
  float* douts = queries + kBlockRows * (key_size + 1);
  float* keys = douts + kBlockRows * (value_size + 1);
  float* values = keys + kTile * (key_size + 1);
  const Block block = my_block(s.heads, s.queries);
  const std::int64_t group = block.head / (s.heads / s.key_value_heads);
  const std::int64_t rows =
      s.queries - block.first < kBlockRows ? s.queries - block.first : kBlockRows;
  const std::int64_t query_row = block.sequence * s.queries + block.first;
  load_rows(queries, a.q, query_row, rows, kBlockRows, block.head * s.key_size, key_size);
  load_rows(douts, a.dout, query_row, rows, kBlockRows, block.head * s.value_size, value_size);
  float acc[kRows][kChunks] = {}, log_sum_exp[kRows], delta[kRows];
  std::uint32_t drop_row[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = my_first_row() + r;
    const std::int64_t query = block.first + (row < rows ? row : 0);
    const std::int64_t statistic = statistic_of(s, block.sequence, block.head, query);
    log_sum_exp[r] = a.log_sum_exp[statistic];
    delta[r] = a.delta[statistic];
    drop_row[r] = kept_row(s, a.keeping, block.sequence, block.head, query);
  }
  const Range range = keys_seen(s, block.first, block.first + rows - 1);
  for (std::int64_t first = range.first; first < range.end; first += kTile) {
    __syncthreads();
    const std::int64_t key_row = block.sequence * s.keys + first;
    load_rows(keys, a.k, key_row, s.keys - first, kTile, group * s.key_size, key_size);
    load_rows(values, a.v, key_row, s.keys - first, kTile, group * s.value_size, value_size);
    __syncthreads();
    const std::int64_t key = first + my_lane();
    float weight[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = my_first_row() + r;
      const bool visible = key < s.keys && row < rows && sees(s, block.first + row, key);
      const float product =
          dot(queries + row * (key_size + 1), keys + my_lane() * (key_size + 1), key_size);
      const float dproduct =
          dot(douts + row * (value_size + 1), values + my_lane() * (value_size + 1), value_size);
      weight[r] = slope_of(a, product, dproduct, log_sum_exp[r], delta[r],
                           kept_factor(s, a.keeping, drop_row[r], key), visible)
                      .dscore;
    }
    add_weighted(acc, weight, keys, key_size);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int row = my_first_row() + r, d = c * kWarp + my_lane();
      if (row < rows && d < key_size)
        write(a.dq, query_row + row, block.head * s.key_size + d, acc[r][c], a.accumulate);
    }
}

/// dK and dV: keys in rows, the queries of all heads that share them over lanes.
__global__ void __launch_bounds__(kThreads) keys_backward_kernel(const BackwardWork a) {
  extern __shared__ float shared[];
  const AttentionShape& s = a.s;
  const int key_size = static_cast<int>(s.key_size), value_size = static_cast<int>(s.value_size);
  float* keys = shared;
  float* values = keys + kBlockRows * (key_size + 1);
  float* queries = values + kBlockRows * (value_size + 1);
  float* douts = queries + kTile * (key_size + 1);
  const Block block = my_block(s.key_value_heads, s.keys);
  const std::int64_t sharing = s.heads / s.key_value_heads;
  const std::int64_t rows = s.keys - block.first < kBlockRows ? s.keys - block.first : kBlockRows;
  const std::int64_t key_row = block.sequence * s.keys + block.first;
  load_rows(keys, a.k, key_row, rows, kBlockRows, block.head * s.key_size, key_size);
  load_rows(values, a.v, key_row, rows, kBlockRows, block.head * s.value_size, value_size);
  float dk[kRows][kChunks] = {}, dv[kRows][kChunks] = {};
  const Range range = queries_seeing(s, block.first, block.first + rows - 1);
  for (std::int64_t head = block.head * sharing; head < (block.head + 1) * sharing; ++head)
    for (std::int64_t first = range.first; first < range.end; first += kTile) {
      __syncthreads();
      const std::int64_t query_row = block.sequence * s.queries + first;
      load_rows(queries, a.q, query_row, s.queries - first, kTile, head * s.key_size, key_size);
      load_rows(douts, a.dout, query_row, s.queries - first, kTile, head * s.value_size,
                value_size);
      __syncthreads();
      const std::int64_t query = first + my_lane();
      const bool is_query = query < s.queries;
      const std::int64_t statistic =
          statistic_of(s, block.sequence, head, is_query ? query : first);
      const float log_sum_exp = a.log_sum_exp[statistic], delta = a.delta[statistic];
      const std::uint32_t drop_row = kept_row(s, a.keeping, block.sequence, head, query);
      float p[kRows], ds[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int row = my_first_row() + r;
        const std::int64_t key = block.first + row;
        const bool visible = is_query && row < rows && sees(s, query, key);
        const float product =
            dot(keys + row * (key_size + 1), queries + my_lane() * (key_size + 1), key_size);
        const float dproduct =
            dot(values + row * (value_size + 1), douts + my_lane() * (value_size + 1), value_size);
        const Slope slope = slope_of(a, product, dproduct, log_sum_exp, delta,
                                     kept_factor(s, a.keeping, drop_row, key), visible);
        p[r] = slope.kept_probability;
        ds[r] = slope.dscore;
      }
      add_weighted(dv, p, douts, value_size);
      add_weighted(dk, ds, queries, key_size);
    }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int row = my_first_row() + r, d = c * kWarp + my_lane();
      if (row >= rows) continue;
      if (d < key_size)
        write(a.dk, key_row + row, block.head * s.key_size + d, dk[r][c], a.accumulate);
      if (d < value_size)
        write(a.dv, key_row + row, block.head * s.value_size + d, dv[r][c], a.accumulate);
    }
}

}  // namespace

void run(const Launch& launch, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  if (s.sequences == 0) return;
#ifdef MESHWRIGHT_CUDNN
  if (run_by_cudnn(stream_of(launch), a)) return;
#endif
  if (fits_tensor_cores(a)) return run_on_tensor_cores(stream_of(launch), a);
  const BackwardWork work{s,
                          keeping_of(s),
                          view_of(a.q),
                          view_of(a.k),
                          view_of(a.v),
                          view_of(a.dout),
                          view_of(ConstMatrix(a.dq)),
                          view_of(ConstMatrix(a.dk)),
                          view_of(ConstMatrix(a.dv)),
                          a.log_sum_exp.data(),
                          a.delta.data(),
                          a.accumulate};
  constexpr int kAll = kBlockRows + kTile;
  if (s.queries > 0) {
    const int bytes = shared_bytes(queries_backward_kernel, s, kAll, kAll);
    const std::int64_t blocks = s.sequences * s.heads * ceil_divide(s.queries, kBlockRows);
    queries_backward_kernel<<<grid_of(blocks), kThreads, bytes, stream_of(launch)>>>(work);
    check_launch();
  }
  if (s.keys > 0) {
    const int bytes = shared_bytes(keys_backward_kernel, s, kAll, kAll);
    const std::int64_t blocks = s.sequences * s.key_value_heads * ceil_divide(s.keys, kBlockRows);
    keys_backward_kernel<<<grid_of(blocks), kThreads, bytes, stream_of(launch)>>>(work);
    check_launch();
  }
}

}  // namespace meshwright::cuda
