/// Optimizer updates. Optimizer state is fp32; `parameter` is the copy used by forward and backward
/// passes (bf16, rounded from the master weights), empty if these use the master weights.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_OPTIMIZER_KERNELS(X) \
  X(adamw,        AdamW)                \
  X(sgd,          Sgd)                  \
  X(squared_norm, SquaredNorm)          \
  X(clip_scale,   ClipScale)
// clang-format on

/// AdamW (arXiv 1711.05101, algorithm 2, with the schedule folded into the learning rate):
///   g = scale * gradient
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
///   w = w - rate (weight_decay w + mhat / (sqrt(vhat) + epsilon)),  mhat = m / (1 - beta1^step)
struct AdamW {
  std::span<float> master = {}, first_moment = {}, second_moment = {};
  ConstVector gradient = {};
  Vector parameter = {};  ///< or empty
  float learning_rate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, weight_decay = 0;
  std::int64_t step = 1;                  ///< 1 for the first update
  const float* gradient_scale = nullptr;  ///< null: 1
};
inline void check(const AdamW& a) {
  check_size(a.gradient, std::ssize(a.master));
  check_size(a.first_moment, std::ssize(a.master));
  check_size(a.second_moment, std::ssize(a.master));
  if (!a.parameter.empty()) check_size(a.parameter, std::ssize(a.master));
  MW_CHECK(a.step >= 1);
}

/// v = momentum v + scale * gradient + weight_decay w;  w = w - rate v. `velocity` is empty without
/// momentum.
struct Sgd {
  std::span<float> master = {}, velocity = {};
  ConstVector gradient = {};
  Vector parameter = {};  ///< or empty
  float learning_rate = 1e-2F, momentum = 0, weight_decay = 0;
  const float* gradient_scale = nullptr;
};
inline void check(const Sgd& a) {
  check_size(a.gradient, std::ssize(a.master));
  check_size_or_empty(a.velocity, std::ssize(a.master));
  MW_CHECK(a.momentum == 0 || !a.velocity.empty() || a.master.empty());
  if (!a.parameter.empty()) check_size(a.parameter, std::ssize(a.master));
}

/// sum += sum over i of x_i^2 (computed in double): contribution to the global gradient norm.
struct SquaredNorm {
  ConstVector x = {};
  float* sum = nullptr;  ///< added to
};
inline void check(const SquaredNorm& a) {
  check_view(a.x);
  MW_CHECK(a.sum != nullptr);
}

/// scale = min(1, limit / (sqrt(sum) + 1e-6)): clipping by the global norm as in PyTorch's
/// clip_grad_norm_.
struct ClipScale {
  const float* sum = nullptr;
  float limit = 1;
  float* scale = nullptr;  ///< out
};
inline void check(const ClipScale& a) {
  MW_CHECK(a.sum != nullptr);
  MW_CHECK(a.scale != nullptr);
  MW_CHECK(a.limit > 0);
}

}  // namespace meshwright
