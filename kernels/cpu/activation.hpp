/// Activation functions on floats, written so that loops over them can be vectorized. Internal.
#pragma once

#include "kernels/activation.hpp"
#include "kernels/cpu/vector.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// GELU by tanh: since (1 + tanh u) / 2 = sigmoid(2 u), it is x sigmoid(2 u).
constexpr float kTwiceRootTwoOverPi = 1.5957691216057308F;  // 2 sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;                     // arXiv 1606.08415, section 2

MESHWRIGHT_INLINE float gelu_tanh_of(float x) {
  return x * sigmoid_of(kTwiceRootTwoOverPi * (x + kGeluCubic * x * x * x));
}
MESHWRIGHT_INLINE float gelu_tanh_slope_of(float x) {
  const float s = sigmoid_of(kTwiceRootTwoOverPi * (x + kGeluCubic * x * x * x));
  return s + x * s * (1 - s) * kTwiceRootTwoOverPi * (1 + 3 * kGeluCubic * x * x);
}

/// The complementary error function for z >= 0 and e^(-z^2), with an absolute error below 1.5e-7
/// (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26).
MESHWRIGHT_INLINE float complementary_error(float z, float exponential_of_minus_square) {
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  return p * t * exponential_of_minus_square;
}
struct NormalDistribution {
  float value, density;
};
MESHWRIGHT_INLINE NormalDistribution normal_distribution_of(float x) {
  constexpr float kInverseRootTwo = 0.7071067811865476F, kInverseRootTwoPi = 0.3989422804014327F;
  const float e = exponential(-0.5F * x * x);
  const float tail = 0.5F * complementary_error((x < 0 ? -x : x) * kInverseRootTwo, e);
  return {x < 0 ? tail : 1.0F - tail, kInverseRootTwoPi * e};
}
MESHWRIGHT_INLINE float gelu_erf_of(float x) { return x * normal_distribution_of(x).value; }
MESHWRIGHT_INLINE float gelu_erf_slope_of(float x) {
  const NormalDistribution normal = normal_distribution_of(x);
  return normal.value + x * normal.density;
}

MESHWRIGHT_INLINE float relu_of(float x) { return x > 0 ? x : 0.0F; }
MESHWRIGHT_INLINE float relu_slope_of(float x) { return x > 0 ? 1.0F : 0.0F; }
MESHWRIGHT_INLINE float silu_of(float x) { return x * sigmoid_of(x); }
MESHWRIGHT_INLINE float silu_slope_of(float x) {
  const float s = sigmoid_of(x);
  return s * (1 + x * (1 - s));
}
/// x sigmoid(1.702 x), from gpt-oss.
MESHWRIGHT_INLINE float steep_silu_of(float x) { return x * sigmoid_of(kClampedSteepness * x); }
MESHWRIGHT_INLINE float steep_silu_slope_of(float x) {
  const float s = sigmoid_of(kClampedSteepness * x);
  return s * (1 + kClampedSteepness * x * (1 - s));
}
/// Below kSmall by its series, whose next term is 9e-9 of the sum; above without cancellation.
MESHWRIGHT_INLINE float tanh_of(float x) {
  constexpr float kSmall = 0.25F;
  const float square = x * x, size = x < 0 ? -x : x;
  const float series =
      1 -
      square * (1.0F / 3 - square * (2.0F / 15 - square * (17.0F / 315 - square * 62.0F / 2835)));
  const float tail = 1 - 2 / (exponential(2 * size) + 1);
  return size < kSmall ? x * series : (x < 0 ? -tail : tail);
}
MESHWRIGHT_INLINE float smaller_of(float x, float limit) { return x < limit ? x : limit; }
MESHWRIGHT_INLINE float clamped_of(float x, float limit) {
  return x < -limit ? -limit : smaller_of(x, limit);
}

}  // namespace
}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
