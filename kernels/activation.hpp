/// Activation functions, element by element.
///
///   ReLU       max(x, 0); its slope at 0 is 0
///   ReLU^2     max(x, 0)^2                                    (arXiv 2109.08668)
///   GELU tanh  x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))   (arXiv 1606.08415)
///   GELU erf   x Phi(x), Phi the normal distribution function
/// Gated (arXiv 2002.05202):
///   SwiGLU     silu(x) up,  silu(x) = x / (1 + e^-x)
///   GEGLU      gelu(x) up, by tanh or erf;  ReGLU  max(x, 0) up
///   clamped    g / (1 + e^(-1.702 g)) (u + 1) with g = min(x, limit) and u = up within +- limit
///              (gpt-oss)
#pragma once

#include <cstdint>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_ACTIVATION_KERNELS(X)     \
  X(activation_forward,  ActivationForward)  \
  X(activation_backward, ActivationBackward)
// clang-format on

enum class ActivationFunction : std::uint8_t {
  kRelu,
  kSquaredRelu,
  kGeluTanh,
  kGeluErf,
  kSwiGlu,
  kGegluTanh,
  kGegluErf,
  kReglu,
  kClampedSwiGlu
};
constexpr bool is_gated(ActivationFunction function) {
  return function >= ActivationFunction::kSwiGlu;
}
inline constexpr float kClampedSteepness = 1.702F;  ///< of gpt-oss' clamped SwiGLU

struct ActivationForward {
  ActivationFunction function = ActivationFunction::kGeluTanh;
  ConstMatrix x = {};   ///< [rows, columns]; gated: the gate
  ConstMatrix up = {};  ///< gated only
  Matrix y = {};        ///< [rows, columns]; may be x or up
  float limit = 0;      ///< clamped only
};
inline void check(const ActivationForward& a) {
  check_same_shape(a.x, {a.y});
  if (is_gated(a.function)) check_same_shape(a.x, {a.up});
}

struct ActivationBackward {
  ActivationFunction function = ActivationFunction::kGeluTanh;
  ConstMatrix x = {}, up = {};  ///< as given to the forward pass
  ConstMatrix dy = {};
  Matrix dx = {};   ///< may be dy
  Matrix dup = {};  ///< gated only
  float limit = 0;  ///< clamped only
};
inline void check(const ActivationBackward& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  if (is_gated(a.function)) check_same_shape(a.x, {a.up, a.dup});
}

}  // namespace meshwright
