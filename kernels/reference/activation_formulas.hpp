/// Activation functions and their derivatives in double; formulas in activation.hpp. Internal.
#pragma once

#include <cmath>
#include <numbers>

#include "kernels/activation.hpp"

namespace meshwright {

inline constexpr double kGeluCubic = 0.044715;  // arXiv 1606.08415, section 2

inline double gelu_tanh(double x) {
  const double u = std::sqrt(2 / std::numbers::pi) * (x + kGeluCubic * x * x * x);
  return 0.5 * x * (1 + std::tanh(u));
}
inline double gelu_tanh_slope(double x) {
  const double c = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(c * (x + kGeluCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * kGeluCubic * x * x);
}

/// Phi(x) by erfc, which keeps its relative accuracy in the left tail.
inline double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
inline double gelu_erf(double x) { return x * normal_distribution(x); }
inline double gelu_erf_slope(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
  return normal_distribution(x) + x * density;
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double silu_slope(double x) {
  const double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}
/// x sigmoid(1.702 x), from gpt-oss.
inline double steep_silu(double x) { return x * sigmoid(double{kClampedSteepness} * x); }
inline double steep_silu_slope(double x) {
  const double steepness = double{kClampedSteepness}, s = sigmoid(steepness * x);
  return s * (1 + steepness * x * (1 - s));
}

}  // namespace meshwright
