// Attention in fp32 arithmetic for every shape: used where tensor cores cannot be, and to check
// their results. A warp has kRows queries (or keys), its lanes the keys (queries) of a tile that
// the block's warps share.
#include <cmath>

#include "kernels/cuda/attention.hpp"

namespace meshwright::cuda {
namespace {

constexpr int kWarps = 8, kRows = 4, kThreads = kWarps * kWarp;
constexpr int kBlockRows = kWarps * kRows;  ///< queries (keys) of a block
constexpr int kTile = kWarp;                ///< keys (queries) at a time: one per lane
constexpr int kMostSize = 256, kChunks = kMostSize / kWarp;
constexpr float kInfinity = INFINITY;

/// Rows [first, first + count) of one head as floats in shared memory, `size + 1` apart to avoid
/// bank conflicts between lanes on adjacent rows; rows beyond are zero.
__device__ void load_rows(float* to, const View& m, std::int64_t first, std::int64_t count,
                          int rows, std::int64_t column, int size) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * size; i += kThreads) {
    const int row = i / size, d = i % size;
    to[row * (size + 1) + d] = row < count ? load_one(m, first + row, column + d) : 0.0F;
  }
}

__device__ float dot(const float* a, const float* b, int size) {
  float sum = 0;
  for (int d = 0; d < size; ++d) sum += a[d] * b[d];
  return sum;
}

/// Position of a block: rows [first, first + kBlockRows) of one head of one sequence.
struct Block {
  std::int64_t sequence, head, first;
};
__device__ Block my_block(std::int64_t heads, std::int64_t rows) {
  const std::int64_t tiles = (rows + kBlockRows - 1) / kBlockRows, index = blockIdx.x;
  const std::int64_t number = index / tiles;
  return {number / heads, number % heads, index % tiles * kBlockRows};
}
__device__ int my_lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ int my_first_row() { return static_cast<int>(threadIdx.x) / kWarp * kRows; }

/// acc[r] += sum over lanes of weight_r * rows[lane], lanes over columns.
__device__ void add_weighted(float (&acc)[kRows][kChunks], const float (&weight)[kRows],
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
      const float score = s.scale * dot(queries + row * (key_size + 1),
                                        keys + my_lane() * (key_size + 1), key_size);
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
  const float p = expf(a.s.scale * product - log_sum_exp);
  return {p * kept, a.s.scale * p * (kept * dproduct - delta)};
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

/// Bytes of shared memory for so many rows of keys and values; allows the kernel more than 48 KiB.
template <class Kernel>
int shared_bytes(Kernel kernel, const AttentionShape& s, std::int64_t key_rows,
                 std::int64_t value_rows) {
  MW_CHECK(s.key_size <= kMostSize && s.value_size <= kMostSize);
  const auto bytes =
      static_cast<int>(4 * (key_rows * (s.key_size + 1) + value_rows * (s.value_size + 1)));
  MESHWRIGHT_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  return bytes;
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
  const std::int64_t blocks = s.sequences * s.heads * steps_of(s.queries, kBlockRows);
  forward_kernel<<<grid_of(blocks), kThreads, bytes, stream_of(launch)>>>(work);
  check_launch();
}

void run(const Launch& launch, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  if (s.sequences == 0) return;
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
    const std::int64_t blocks = s.sequences * s.heads * steps_of(s.queries, kBlockRows);
    queries_backward_kernel<<<grid_of(blocks), kThreads, bytes, stream_of(launch)>>>(work);
    check_launch();
  }
  if (s.keys > 0) {
    const int bytes = shared_bytes(keys_backward_kernel, s, kAll, kAll);
    const std::int64_t blocks = s.sequences * s.key_value_heads * steps_of(s.keys, kBlockRows);
    keys_backward_kernel<<<grid_of(blocks), kThreads, bytes, stream_of(launch)>>>(work);
    check_launch();
  }
}

// ---- one warp per query of each head ------------------------------------------------------

namespace {

/// Query `index` in row order, heads fastest, so that adjacent warps read adjacent columns.
struct Query {
  std::int64_t row, column, statistic;
  int head;
};
__device__ Query query_at(const AttentionShape& s, std::int64_t index) {
  const std::int64_t row = index / s.heads, head = index % s.heads;
  return {row, head * s.value_size, statistic_of(s, row / s.queries, head, row % s.queries),
          static_cast<int>(head)};
}
__device__ std::int64_t my_query() {
  return static_cast<std::int64_t>(blockIdx.x) * (kMapThreads / kWarp) + threadIdx.x / kWarp;
}
__host__ __device__ inline std::int64_t query_count(const AttentionShape& s) {
  return s.sequences * s.queries * s.heads;
}
/// A head allows wide accesses if it starts at a multiple of eight columns.
View head_view(const ConstMatrix& m, const AttentionShape& s) {
  View view = view_of(m);
  view.wide = view.wide && s.value_size % kPack == 0;
  return view;
}

__global__ void __launch_bounds__(kMapThreads)
    delta_kernel(const AttentionShape s, const View out, const View dout, float* delta) {
  const std::int64_t index = my_query();
  if (index >= query_count(s)) return;
  const Query at = query_at(s, index);
  float sum = 0;
  for (std::int64_t d = my_lane() * kPack; d < s.value_size; d += kWarp * kPack) {
    const int count = pack_count(s.value_size, d);
    const Pack o = load_pack(out, at.row, at.column + d, count);
    const Pack g = load_pack(dout, at.row, at.column + d, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) sum += o.v[e] * g.v[e];
  }
  sum = warp_sum(sum);
  if (my_lane() == 0) delta[at.statistic] = sum;
}

/// out' = out e^(l - l') + block e^(m - l') with l' = log(e^l + e^m); without a block, it is zero.
__global__ void __launch_bounds__(kMapThreads)
    merge_kernel(const AttentionShape s, const View out, float* log_sum_exp, const View block,
                 const float* block_log_sum_exp, const View sinks) {
  const std::int64_t index = my_query();
  if (index >= query_count(s)) return;
  const Query at = query_at(s, index);
  const bool is_sink = block_log_sum_exp == nullptr;
  const float running = log_sum_exp[at.statistic];
  const float other = is_sink ? load_one(sinks, 0, at.head) : block_log_sum_exp[at.statistic];
  const float maximum = fmaxf(running, other);
  __syncwarp();  // all lanes have read what lane 0 writes below
  if (maximum == -kInfinity) return;
  const float mine = expf(running - maximum), theirs = expf(other - maximum);
  const float sum = mine + theirs;
  for (std::int64_t d = my_lane() * kPack; d < s.value_size; d += kWarp * kPack) {
    const int count = pack_count(s.value_size, d);
    Pack o = load_pack(out, at.row, at.column + d, count);
    Pack b{};
    if (!is_sink) b = load_pack(block, at.row, at.column + d, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) o.v[e] = o.v[e] * (mine / sum) + b.v[e] * (theirs / sum);
    store_pack(out, at.row, at.column + d, count, o);
  }
  if (my_lane() == 0) log_sum_exp[at.statistic] = maximum + logf(sum);
}

/// One thread block per head.
__global__ void __launch_bounds__(kThreads)
    sinks_gradient_kernel(const AttentionShape s, const View sinks, const float* log_sum_exp,
                          const float* delta, float* dsinks) {
  __shared__ float shared[kThreads / kWarp];
  const std::int64_t head = blockIdx.x;
  const float sink = load_one(sinks, 0, head);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < s.sequences * s.queries; i += kThreads) {
    const std::int64_t statistic = statistic_of(s, i / s.queries, head, i % s.queries);
    sum -= expf(sink - log_sum_exp[statistic]) * delta[statistic];
  }
  sum = row_sum(sum, shared);
  if (threadIdx.x == 0) dsinks[head] += sum;
}

unsigned query_blocks(const AttentionShape& s) {
  return grid_of(steps_of(query_count(s), kMapThreads / kWarp));
}

}  // namespace

void run(const Launch& launch, const AttentionDelta& a) {
  if (query_count(a.shape) == 0) return;
  delta_kernel<<<query_blocks(a.shape), kMapThreads, 0, stream_of(launch)>>>(
      a.shape, head_view(a.out, a.shape), head_view(a.dout, a.shape), a.delta.data());
  check_launch();
}

void run(const Launch& launch, const AttentionMerge& a) {
  if (query_count(a.shape) == 0) return;
  merge_kernel<<<query_blocks(a.shape), kMapThreads, 0, stream_of(launch)>>>(
      a.shape, head_view(a.out, a.shape), a.log_sum_exp.data(), head_view(a.block, a.shape),
      a.block_log_sum_exp.data(), View{});
  check_launch();
}

void run(const Launch& launch, const AttentionSinks& a) {
  if (query_count(a.shape) == 0) return;
  merge_kernel<<<query_blocks(a.shape), kMapThreads, 0, stream_of(launch)>>>(
      a.shape, head_view(a.out, a.shape), a.log_sum_exp.data(), View{}, nullptr, view_of(a.sinks));
  check_launch();
}

void run(const Launch& launch, const AttentionSinksGradient& a) {
  sinks_gradient_kernel<<<grid_of(a.shape.heads), kThreads, 0, stream_of(launch)>>>(
      a.shape, view_of(a.sinks), a.log_sum_exp.data(), a.delta.data(), a.dsinks.data());
  check_launch();
}

}  // namespace meshwright::cuda
