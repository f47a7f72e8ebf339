/// Activation functions and their derivatives on the device; formulas in activation.hpp. Internal;
/// for .cu files only.
#pragma once

#include <cuda_runtime.h>

#include "kernels/activation.hpp"

namespace meshwright::cuda {

constexpr float kGeluCubic = 0.044715F;            // arXiv 1606.08415, section 2
constexpr float kGeluScale = 0.7978845608028654F;  // sqrt(2 / pi)

__device__ inline float gelu_tanh(float x) {
  return 0.5F * x * (1.0F + tanhf(kGeluScale * (x + kGeluCubic * x * x * x)));
}
__device__ inline float gelu_tanh_slope(float x) {
  const float t = tanhf(kGeluScale * (x + kGeluCubic * x * x * x));
  return 0.5F * (1.0F + t) +
         0.5F * x * (1.0F - t * t) * kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
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

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }
__device__ inline float silu(float x) { return x / (1.0F + expf(-x)); }
__device__ inline float silu_slope(float x) {
  const float s = sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}
/// x sigmoid(1.702 x), from gpt-oss.
__device__ inline float steep_silu(float x) { return x / (1.0F + expf(-kClampedSteepness * x)); }
__device__ inline float steep_silu_slope(float x) {
  const float s = sigmoid(kClampedSteepness * x);
  return s * (1.0F + kClampedSteepness * x * (1.0F - s));
}

}  // namespace meshwright::cuda
