// What attention needs besides products: delta, the merge of blocks, sinks.
#include "kernels/cuda/attention_lanes.hpp"

namespace meshwright::cuda {
namespace {

/// One warp per query of each head. Query `index` in row order, heads fastest, so that adjacent
/// warps read adjacent columns.
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

/// As many lanes per query of a head as it has packs, up to a warp.
int lanes_for(const AttentionShape& s) {
  int lanes = 1;
  while (lanes < kWarp && lanes * kPack < s.value_size) lanes *= 2;
  return lanes;
}

__global__ void __launch_bounds__(kMapThreads)
    delta_kernel(const AttentionShape s, const int lanes, const View out, const View dout,
                 float* delta) {
  const std::uint32_t index = blockIdx.x * (kMapThreads / lanes) + threadIdx.x / lanes;
  const bool is_real = index < query_count(s);  // all lanes take part in the sums
  const auto heads = static_cast<std::uint32_t>(s.heads);
  const std::uint32_t row = is_real ? index / heads : 0;
  const std::uint32_t head = is_real ? index - row * heads : 0;
  const std::int64_t column = head * s.value_size;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  float sum = 0;
  for (std::int64_t d = lane * kPack; d < s.value_size; d += lanes * kPack) {
    const int count = pack_count(s.value_size, d);
    const Pack o = load_pack(out, row, column + d, count);
    const Pack g = load_pack(dout, row, column + d, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e) sum += o.v[e] * g.v[e];
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  if (!is_real || lane != 0) return;
  const auto queries = static_cast<std::uint32_t>(s.queries);
  const std::uint32_t sequence = row / queries;
  delta[statistic_of(s, sequence, head, row - sequence * queries)] = sum;
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
  return grid_of(ceil_divide(query_count(s), kMapThreads / kWarp));
}

}  // namespace

void run(const Launch& launch, const AttentionDelta& a) {
  if (query_count(a.shape) == 0) return;
  const int lanes = lanes_for(a.shape);
  const std::int64_t blocks = ceil_divide(query_count(a.shape), kMapThreads / lanes);
  MW_CHECK(blocks * (kMapThreads / lanes) < (std::int64_t{1} << 32));
  delta_kernel<<<grid_of(blocks), kMapThreads, 0, stream_of(launch)>>>(
      a.shape, lanes, head_view(a.out, a.shape), head_view(a.dout, a.shape), a.delta.data());
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
