/// Activation functions and their derivatives on the device; formulas in activation.hpp. Internal;
/// for .cu files only.
#pragma once

#include <cuda_runtime.h>

#include "kernels/activation.hpp"
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {

constexpr float kGeluCubic = 0.044715F;            // arXiv 1606.08415, section 2
constexpr float kGeluScale = 0.7978845608028654F;  // sqrt(2 / pi)

__device__ inline float sigmoid(float x) { return __fdividef(1.0F, 1.0F + fast_exp(-x)); }

/// 0.5 (1 + tanh(u)) = sigmoid(2 u), which keeps its relative accuracy in the left tail.
__device__ inline float gelu_tanh(float x) {
  const float u = kGeluScale * (x + kGeluCubic * x * x * x);
  return __fdividef(x, 1.0F + fast_exp(-2.0F * u));
}
__device__ inline float gelu_tanh_slope(float x) {
  const float s = sigmoid(2.0F * kGeluScale * (x + kGeluCubic * x * x * x));
  return s + x * s * (1.0F - s) * 2.0F * kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
}

/// Phi(x) by erfc, which keeps its relative accuracy in the left tail.
__device__ inline float normal_distribution(float x) {
  return 0.5F * erfcf(-0.7071067811865476F * x);
}
__device__ inline float gelu_erf(float x) { return x * normal_distribution(x); }
__device__ inline float gelu_erf_slope(float x) {
  const float density = 0.3989422804014327F * expf(-0.5F * x * x);  // 1 / sqrt(2 pi)
  return normal_distribution(x) + x * density;
}

__device__ inline float silu(float x) { return __fdividef(x, 1.0F + fast_exp(-x)); }
__device__ inline float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}
/// x sigmoid(1.702 x), from gpt-oss.
__device__ inline float steep_silu(float x) {
  return __fdividef(x, 1.0F + fast_exp(-kClampedSteepness * x));
}
__device__ inline float steep_silu_slope(float x) {
  const float s = sigmoid(kClampedSteepness * x);
  return s * (1.0F + kClampedSteepness * x * (1.0F - s));
}

}  // namespace meshwright::cuda
