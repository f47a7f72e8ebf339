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

/// Softmax sum of a row, by all threads of a block; every thread gets it.
__device__ Softmax softmax_of(const View& logits, std::int64_t row, std::int64_t tokens,
                              Softmax* shared) {
  Softmax s{-kInfinity, 0.0F};
#pragma unroll 2
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kPack; i < tokens;
       i += kThreads * kPack) {
    const int count = pack_count(tokens, i);
    const Pack x = load_pack(logits, row, i, count);
    float here = -kInfinity;
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      if (e < count) here = fmaxf(here, x.v[e]);
    const float maximum = fmaxf(s.maximum, here);
    float sum = 0;
    if (maximum > -kInfinity) {
#pragma unroll
      for (int e = 0; e < kPack; ++e)
        if (e < count) sum += expf(x.v[e] - maximum);
      sum += s.sum * expf(s.maximum - maximum);
    }
    s = {maximum, sum};
  }
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

__global__ void __launch_bounds__(kThreads)
    forward_kernel(const Shard shard, const std::int32_t* targets, float* maximum, float* sum,
                   float* loss) {
  __shared__ Softmax shared[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const Softmax s = softmax_of(shard.logits, row, shard.tokens, shared);
  if (threadIdx.x != 0) return;
  maximum[row] = s.maximum;
  sum[row] = s.sum;
  loss[row] = loss_of(targets[row], s.maximum, s.sum, shard.logit_of(row, targets[row]));
}

__global__ void __launch_bounds__(kThreads) maximum_kernel(const Shard shard, float* maximum) {
  __shared__ float shared[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  float largest = -kInfinity;
#pragma unroll 2
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kPack; i < shard.tokens;
       i += kThreads * kPack) {
    const int count = pack_count(shard.tokens, i);
    const Pack x = load_pack(shard.logits, row, i, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      if (e < count) largest = fmaxf(largest, x.v[e]);
  }
  largest = warp_max(largest);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = largest;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 0; w < kThreads / kWarp; ++w) largest = fmaxf(largest, shared[w]);
  maximum[row] = largest;
}

__global__ void __launch_bounds__(kThreads)
    sum_kernel(const Shard shard, const std::int32_t* targets, const float* maximum, float* sum,
               float* target_logit) {
  __shared__ float shared[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const float largest = maximum[row];
  float total = 0;
#pragma unroll 2
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * kPack; i < shard.tokens;
       i += kThreads * kPack) {
    const int count = pack_count(shard.tokens, i);
    const Pack x = load_pack(shard.logits, row, i, count);
#pragma unroll
    for (int e = 0; e < kPack; ++e)
      if (e < count) total += expf(x.v[e] - largest);
  }
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
  const std::int32_t* targets;
  const float *maximum, *sum;
  std::int64_t tokens, first_token;
  float scale;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
    const std::int32_t target = targets[at.row];
    const float largest = maximum[at.row];
    const float factor = target < 0 ? 0.0F : scale / sum[at.row];
    const std::int64_t goal = target < 0 ? -1 : target - first_token;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const std::int64_t column = at.column + i;
      float value = 0;
      if (target >= 0 && column < tokens) {
        value = factor * expf(in[0].v[i] - largest);
        if (column == goal) value -= scale;
      }
      out[0].v[i] = value;
    }
  }
};

}  // namespace

void run(const Launch& launch, const CrossEntropyMaximum& a) {
  if (a.shard.logits.rows == 0) return;
  maximum_kernel<<<grid_of(a.shard.logits.rows), kThreads, 0, stream_of(launch)>>>(
      shard_of(a.shard), a.maximum.data());
  check_launch();
}

void run(const Launch& launch, const CrossEntropySum& a) {
  if (a.shard.logits.rows == 0) return;
  sum_kernel<<<grid_of(a.shard.logits.rows), kThreads, 0, stream_of(launch)>>>(
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
  if (a.shard.logits.rows == 0) return;
  forward_kernel<<<grid_of(a.shard.logits.rows), kThreads, 0, stream_of(launch)>>>(
      shard_of(a.shard), a.targets.data(), a.maximum.data(), a.sum.data(), a.loss.data());
  check_launch();
}

void run(const Launch& launch, const CrossEntropyGradient& a) {
  Gradient gradient{};
  gradient.targets = a.targets.data();
  gradient.maximum = a.maximum.data();
  gradient.sum = a.sum.data();
  gradient.tokens = a.shard.tokens;
  gradient.first_token = a.shard.first_token;
  gradient.scale = a.scale;
  map<1, 1>(stream_of(launch), {a.shard.logits}, {a.dlogits}, gradient, true);
}

}  // namespace meshwright::cuda
