// The loss: one block per row, one pass with a running maximum and sum; the gradient is a map.
#include <cmath>

#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

constexpr int kThreads = 512;
constexpr float kInfinity = INFINITY;

/// The sum of e^(x - maximum) over some elements.
struct Softmax {
  float maximum, sum;
};
__device__ Softmax merged(Softmax a, Softmax b) {
  const float maximum = fmaxf(a.maximum, b.maximum);
  if (maximum == -kInfinity) return {maximum, 0.0F};
  return {maximum, a.sum * expf(a.maximum - maximum) + b.sum * expf(b.maximum - maximum)};
}

/// Adds a pack: NaN propagates.
__device__ Softmax with_pack(const Softmax& s, const Pack& x, int count) {
  float here = -kInfinity;
#pragma unroll
  for (int e = 0; e < kPack; ++e)
    if (e < count) here = fmaxf(here, x.v[e]);
  const float maximum = fmaxf(s.maximum, here);
  float sum = 0;
  if (maximum > -kInfinity) {
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      if (e < count) sum += fast_exp(x.v[e] - maximum);
    sum += s.sum * fast_exp(s.maximum - maximum);
  }
  return {maximum, sum};
}

/// How the rows are stored: aligned to 16 bytes, in one dtype, or any.
enum class Rows { kAny, kPlainBf16, kPlainFp32 };
Rows rows_of(const View& m) {
  if (!m.wide) return Rows::kAny;
  return m.bf16 ? Rows::kPlainBf16 : Rows::kPlainFp32;
}

/// Calls take(pack, column, count) for this thread's packs of a row, in ascending order.
template <Rows kRows, class Take>
__device__ void for_each_pack(const View& logits, std::int64_t row, std::int64_t tokens,
                              const Take& take) {
  constexpr std::int64_t kStep = std::int64_t{kThreads} * kPack;
  std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kPack;
  if constexpr (kRows != Rows::kAny) {
    constexpr bool kBf16 = kRows == Rows::kPlainBf16;
    constexpr int kAtOnce = kBf16 ? 4 : 2;
    const std::int64_t whole = tokens / kPack * kPack;
    for (; i + (kAtOnce - 1) * kStep < whole; i += kAtOnce * kStep) {
      StoredPack<kBf16> stored[kAtOnce];
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) stored[p] = load_stored<kBf16>(logits, row, i + p * kStep);
#pragma unroll
      for (int p = 0; p < kAtOnce; ++p) take(unpacked(stored[p]), i + p * kStep, kPack);
    }
    for (; i < whole; i += kStep) take(unpacked(load_stored<kBf16>(logits, row, i)), i, kPack);
  }
  for (; i < tokens; i += kStep) {
    const int count = pack_count(tokens, i);
    take(load_pack(logits, row, i, count), i, count);
  }
}

/// Softmax sum of a row, by all threads of a block; every thread gets it.
template <Rows kRows>
__device__ Softmax softmax_of(const View& logits, std::int64_t row, std::int64_t tokens,
                              Softmax* shared) {
  Softmax s{-kInfinity, 0.0F};
  for_each_pack<kRows>(logits, row, tokens,
                       [&](const Pack& x, std::int64_t, int count) { s = with_pack(s, x, count); });
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2)
    s = merged(s, {__shfl_xor_sync(0xFFFFFFFFU, s.maximum, lane),
                   __shfl_xor_sync(0xFFFFFFFFU, s.sum, lane)});
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = s;
  __syncthreads();
  s = shared[0];
  for (int w = 1; w < kThreads / kWarp; ++w) s = merged(s, shared[w]);
  return s;
}

struct Shard {
  View logits;
  std::int64_t tokens, first_token;
  __device__ float logit_of(std::int64_t row, std::int64_t token) const {
    const std::int64_t column = token - first_token;
    return column >= 0 && column < tokens ? load_one(logits, row, column) : 0.0F;
  }
};
Shard shard_of(const LogitShard& s) { return {view_of(s.logits), s.tokens, s.first_token}; }

__device__ float loss_of(std::int32_t target, float maximum, float sum, float target_logit) {
  if (target < 0) return 0.0F;
  return static_cast<float>(log(static_cast<double>(sum)) + static_cast<double>(maximum) -
                            static_cast<double>(target_logit));
}

template <Rows kRows>
__global__ void __launch_bounds__(kThreads)
    forward_kernel(const Shard shard, const std::int32_t* targets, float* maximum, float* sum,
                   float* loss) {
  __shared__ Softmax shared[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const Softmax s = softmax_of<kRows>(shard.logits, row, shard.tokens, shared);
  if (threadIdx.x != 0) return;
  maximum[row] = s.maximum;
  sum[row] = s.sum;
  loss[row] = loss_of(targets[row], s.maximum, s.sum, shard.logit_of(row, targets[row]));
}

template <Rows kRows>
__global__ void __launch_bounds__(kThreads) maximum_kernel(const Shard shard, float* maximum) {
  __shared__ float shared[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  float largest = -kInfinity;
  for_each_pack<kRows>(shard.logits, row, shard.tokens,
                       [&](const Pack& x, std::int64_t, int count) {
#pragma unroll
                         for (int e = 0; e < kPack; ++e)
                           if (e < count) largest = fmaxf(largest, x.v[e]);
                       });
  largest = warp_max(largest);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 0; w < kThreads / kWarp; ++w) largest = fmaxf(largest, shared[w]);
  maximum[row] = largest;
}

template <Rows kRows>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const Shard shard, const std::int32_t* targets, const float* maximum, float* sum,
               float* target_logit) {
  __shared__ float shared[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const float largest = maximum[row];
  float total = 0;
  for_each_pack<kRows>(shard.logits, row, shard.tokens,
                       [&](const Pack& x, std::int64_t, int count) {
#pragma unroll
                         for (int e = 0; e < kPack; ++e)
                           if (e < count) total += fast_exp(x.v[e] - largest);
                       });
  total = row_sum(total, shared);
  if (threadIdx.x != 0) return;
  sum[row] = total;
  target_logit[row] = shard.logit_of(row, targets[row]);
}

__global__ void loss_kernel(const std::int64_t rows, const std::int32_t* targets,
                            const float* maximum, const float* sum, const float* target_logit,
                            float* loss) {
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n < rows) loss[n] = loss_of(targets[n], maximum[n], sum[n], target_logit[n]);
}

struct Gradient {
  Shard shard;
  std::int64_t columns;
  const std::int32_t* targets;
  const float *maximum, *sum;
  float scale;
  View dlogits;
};

/// Columns [0, columns): those that are not tokens are padding, with a gradient of zero.
template <Rows kRows>
__global__ void __launch_bounds__(kThreads) gradient_kernel(const Gradient a) {
  const std::int64_t row = blockIdx.x, tokens = a.shard.tokens;
  const std::int32_t target = a.targets[row];
  const float largest = a.maximum[row];
  const float factor = target < 0 ? 0.0F : a.scale / a.sum[row];
  const std::int64_t goal = target < 0 ? -1 : target - a.shard.first_token;
  for_each_pack<kRows>(a.shard.logits, row, a.columns,
                       [&](const Pack& x, std::int64_t first, int count) {
                         Pack out;
#pragma unroll
                         for (int i = 0; i < kPack; ++i) {
                           const std::int64_t column = first + i;
                           float value = 0;
                           if (target >= 0 && column < tokens) {
                             value = factor * fast_exp(x.v[i] - largest);
                             if (column == goal) value -= a.scale;
                           }
                           out.v[i] = value;
                         }
                         store_pack(a.dlogits, row, first, count, out);
                       });
}

/// The instance of a kernel for rows that are stored so.
#define MESHWRIGHT_INSTANCE(kernel, rows)                  \
  ((rows) == Rows::kAny         ? kernel<Rows::kAny>       \
   : (rows) == Rows::kPlainBf16 ? kernel<Rows::kPlainBf16> \
                                : kernel<Rows::kPlainFp32>)

}  // namespace

void run(const Launch& launch, const CrossEntropyMaximum& a) {
  const std::int64_t rows = a.shard.logits.rows;
  if (rows == 0) return;
  const auto kernel = MESHWRIGHT_INSTANCE(maximum_kernel, rows_of(view_of(a.shard.logits)));
  kernel<<<grid_of(rows), kThreads, 0, stream_of(launch)>>>(shard_of(a.shard), a.maximum.data());
  check_launch();
}

void run(const Launch& launch, const CrossEntropySum& a) {
  const std::int64_t rows = a.shard.logits.rows;
  if (rows == 0) return;
  const auto kernel = MESHWRIGHT_INSTANCE(sum_kernel, rows_of(view_of(a.shard.logits)));
  kernel<<<grid_of(rows), kThreads, 0, stream_of(launch)>>>(
      shard_of(a.shard), a.targets.data(), a.maximum.data(), a.sum.data(), a.target_logit.data());
  check_launch();
}

void run(const Launch& launch, const CrossEntropyLoss& a) {
  const auto rows = static_cast<std::int64_t>(a.loss.size());
  if (rows == 0) return;
  loss_kernel<<<grid_of(ceil_divide(rows, kMapThreads)), kMapThreads, 0, stream_of(launch)>>>(
      rows, a.targets.data(), a.maximum.data(), a.sum.data(), a.target_logit.data(), a.loss.data());
  check_launch();
}

void run(const Launch& launch, const CrossEntropyForward& a) {
  const std::int64_t rows = a.shard.logits.rows;
  if (rows == 0) return;
  const auto kernel = MESHWRIGHT_INSTANCE(forward_kernel, rows_of(view_of(a.shard.logits)));
  kernel<<<grid_of(rows), kThreads, 0, stream_of(launch)>>>(
      shard_of(a.shard), a.targets.data(), a.maximum.data(), a.sum.data(), a.loss.data());
  check_launch();
}

void run(const Launch& launch, const CrossEntropyGradient& a) {
  const ConstMatrix& logits = a.shard.logits;
  if (logits.empty()) return;
  const Gradient gradient{shard_of(a.shard),
                          logits.columns,
                          a.targets.data(),
                          a.maximum.data(),
                          a.sum.data(),
                          a.scale,
                          view_of(ConstMatrix(a.dlogits))};
  const auto kernel = MESHWRIGHT_INSTANCE(gradient_kernel, rows_of(gradient.shard.logits));
  kernel<<<grid_of(logits.rows), kThreads, 0, stream_of(launch)>>>(gradient);
  check_launch();
}

}  // namespace meshwright::cuda
