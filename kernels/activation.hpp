/// Activation functions, element by element.
///
///   ReLU       max(x, 0); its slope at 0 is 0
///   ReLU^2     max(x, 0)^2                                    (arXiv 2109.08668)
///   GELU tanh  x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))   (arXiv 1606.08415)
///   GELU erf   x Phi(x), Phi the normal distribution function
///   SwiGLU     silu(x) * up,  silu(x) = x / (1 + e^-x)         (arXiv 2002.05202)
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

enum class ActivationFunction : std::uint8_t { kRelu, kSquaredRelu, kGeluTanh, kGeluErf, kSwiGlu };

struct ActivationForward {
  ActivationFunction function = ActivationFunction::kGeluTanh;
  ConstMatrix x = {};   ///< [rows, columns]; SwiGLU: the gate
  ConstMatrix up = {};  ///< SwiGLU only
  Matrix y = {};        ///< [rows, columns]; may be x or up
};
inline void check(const ActivationForward& a) {
  check_same_shape(a.x, {a.y});
  if (a.function == ActivationFunction::kSwiGlu) check_same_shape(a.x, {a.up});
}

struct ActivationBackward {
  ActivationFunction function = ActivationFunction::kGeluTanh;
  ConstMatrix x = {}, up = {};  ///< as given to the forward pass
  ConstMatrix dy = {};
  Matrix dx = {};   ///< may be dy
  Matrix dup = {};  ///< SwiGLU only
};
inline void check(const ActivationBackward& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  if (a.function == ActivationFunction::kSwiGlu) check_same_shape(a.x, {a.up, a.dup});
}

}  // namespace meshwright
