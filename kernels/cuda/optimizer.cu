#include <algorithm>
#include <cmath>

#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

__device__ float scale_at(const float* gradient_scale) {
  return gradient_scale == nullptr ? 1.0F : *gradient_scale;
}

struct AdamWStep {
  View gradient, parameter;
  bool has_parameter;
  const float* gradient_scale;
  float beta1, beta2, rate, decay, epsilon, correct1, correct2;
  /// (w, m, v) updated in place.
  __device__ void operator()(const Pack (&in)[3], Pack (&out)[3], const Place& at) const {
    const float scale = scale_at(gradient_scale);
    const Pack g = load_pack(gradient, 0, at.column, at.count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float gradient_here = scale * g.v[i], w = in[0].v[i];
      const float m = beta1 * in[1].v[i] + (1.0F - beta1) * gradient_here;
      const float v = beta2 * in[2].v[i] + (1.0F - beta2) * (gradient_here * gradient_here);
      const float direction = m * correct1 / (sqrtf(v * correct2) + epsilon);
      out[0].v[i] = w - rate * (decay * w + direction);
      out[1].v[i] = m;
      out[2].v[i] = v;
    }
    if (has_parameter) store_pack(parameter, 0, at.column, at.count, out[0]);
  }
};

struct SgdStep {
  View gradient, velocity, parameter;
  bool has_velocity, has_parameter;
  const float* gradient_scale;
  float rate, momentum, decay;
  __device__ void operator()(const Pack (&in)[1], Pack (&out)[1], const Place& at) const {
    const float scale = scale_at(gradient_scale);
    const Pack g = load_pack(gradient, 0, at.column, at.count);
    Pack v{};
    if (has_velocity) v = load_pack(velocity, 0, at.column, at.count);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      v.v[i] = momentum * v.v[i] + (scale * g.v[i] + decay * in[0].v[i]);
      out[0].v[i] = in[0].v[i] - rate * v.v[i];
    }
    if (has_velocity) store_pack(velocity, 0, at.column, at.count, v);
    if (has_parameter) store_pack(parameter, 0, at.column, at.count, out[0]);
  }
};

Matrix row_of_floats(std::span<float> values) {
  return dense_matrix(values.data(), 1, static_cast<std::int64_t>(values.size()), Dtype::kFp32);
}

float inverse_correction(float beta, std::int64_t step) {
  return static_cast<float>(1 /
                            (1 - std::pow(static_cast<double>(beta), static_cast<double>(step))));
}

}  // namespace

void run(const Launch& launch, const AdamW& a) {
  AdamWStep step{};
  step.gradient = view_of(a.gradient);
  step.parameter = view_of(ConstVector(a.parameter));
  step.has_parameter = a.parameter.size != 0;
  step.gradient_scale = a.gradient_scale;
  step.beta1 = a.beta1, step.beta2 = a.beta2;
  step.rate = a.learning_rate, step.decay = a.weight_decay, step.epsilon = a.epsilon;
  step.correct1 = inverse_correction(a.beta1, a.step);
  step.correct2 = inverse_correction(a.beta2, a.step);
  const Matrix w = row_of_floats(a.master), m = row_of_floats(a.first_moment),
               v = row_of_floats(a.second_moment);
  map<3, 3>(stream_of(launch), {w, m, v}, {w, m, v}, step, true);
}

void run(const Launch& launch, const Sgd& a) {
  SgdStep step{};
  step.gradient = view_of(a.gradient);
  step.has_velocity = !a.velocity.empty();
  if (step.has_velocity) step.velocity = view_of(ConstMatrix(row_of_floats(a.velocity)));
  step.parameter = view_of(ConstVector(a.parameter));
  step.has_parameter = a.parameter.size != 0;
  step.gradient_scale = a.gradient_scale;
  step.rate = a.learning_rate, step.momentum = a.momentum, step.decay = a.weight_decay;
  const Matrix w = row_of_floats(a.master);
  map<1, 1>(stream_of(launch), {w}, {w}, step, true);
}

// ---- norm of the gradients ----------------------------------------------------------------

namespace {

constexpr int kNormThreads = 256;
constexpr std::int64_t kMaxNormBlocks = 528;  // four per multiprocessor of 132

/// Only the first block may be without elements.
std::int64_t norm_blocks_of(const SquaredNorm& a) {
  constexpr std::int64_t kOfBlock = std::int64_t{kNormThreads} * kPack;
  return std::clamp<std::int64_t>((a.x.size + kOfBlock - 1) / kOfBlock, 1, kMaxNormBlocks);
}

__global__ void __launch_bounds__(kNormThreads)
    partial_squares_kernel(const View x, const std::int64_t size, double* partial) {
  __shared__ double shared[kNormThreads / kWarp];
  double sum = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kNormThreads * kPack;
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kNormThreads + threadIdx.x) * kPack;
#pragma unroll 4
  for (; i < size; i += step) {
    const Pack p = load_pack(x, 0, i, pack_count(size, i));
    float squares = 0;
#pragma unroll
    for (int e = 0; e < kPack; ++e) squares += p.v[e] * p.v[e];
    sum += static_cast<double>(squares);
  }
  sum = row_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kNormThreads)
    add_squares_kernel(const double* partial, const int count, float* sum) {
  __shared__ double shared[kNormThreads / kWarp];
  double mine = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kNormThreads) mine += partial[i];
  mine = row_sum(mine, shared);
  if (threadIdx.x == 0) *sum = static_cast<float>(static_cast<double>(*sum) + mine);
}

__global__ void clip_scale_kernel(const float* sum, const float limit, float* scale) {
  constexpr double kAgainstZero = 1e-6;  // PyTorch, torch.nn.utils.clip_grad_norm_
  const double norm = sqrt(static_cast<double>(*sum));
  *scale = static_cast<float>(fmin(1.0, static_cast<double>(limit) / (norm + kAgainstZero)));
}

}  // namespace

Bytes scratch(const SquaredNorm& a) {
  Pieces pieces;
  pieces.take<double>(norm_blocks_of(a));
  return pieces.bytes();
}

void run(const Launch& launch, const SquaredNorm& a) {
  const std::int64_t blocks = norm_blocks_of(a);
  auto* partial = Pieces(launch).take<double>(blocks);
  partial_squares_kernel<<<grid_of(blocks), kNormThreads, 0, stream_of(launch)>>>(
      view_of(a.x), a.x.size, partial);
  check_launch();
  add_squares_kernel<<<1, kNormThreads, 0, stream_of(launch)>>>(partial, static_cast<int>(blocks),
                                                                a.sum);
  check_launch();
}

void run(const Launch& launch, const ClipScale& a) {
  clip_scale_kernel<<<1, 1, 0, stream_of(launch)>>>(a.sum, a.limit, a.scale);
  check_launch();
}

}  // namespace meshwright::cuda
