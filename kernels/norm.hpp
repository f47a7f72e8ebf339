/// Layer norm (arXiv 1607.06450) and root-mean-square norm (arXiv 1910.07467) over the columns.
///
///   layer norm   y = (x - mean) * r * w + bias,  r = 1 / sqrt(variance + epsilon)
///   rms norm     y = x * r * w,                  r = 1 / sqrt(mean of x^2 + epsilon)
///
/// with w = weight + offset, or 1 without weights.
///
/// With groups > 1 every row consists of that many equal parts, each normalized separately with the
/// same weight [columns / groups]: QK norm. Statistics are per (row, group), groups fastest.
#pragma once

#include <span>

#include "core/model/model_graph.hpp"
#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_NORM_KERNELS(X)            \
  X(norm_forward,         NormForward)        \
  X(norm_backward_input,  NormBackwardInput)  \
  X(norm_backward_weight, NormBackwardWeight)
// clang-format on

inline void check_statistics(NormKind kind, std::span<const float> mean,
                             std::span<const float> deviation, std::int64_t count) {
  if (kind == NormKind::kLayerNorm) check_size(mean, count);
  check_size(deviation, count);
}

struct NormForward {
  NormKind kind = NormKind::kLayerNorm;
  ConstMatrix x = {};       ///< [rows, columns]
  ConstVector weight = {};  ///< [columns / groups] or empty
  float offset = 0;
  ConstVector bias = {};  ///< [columns / groups] or empty; layer norm only
  float epsilon = 1e-5F;
  std::int64_t groups = 1;
  Matrix y = {};               ///< [rows, columns]; may be x; empty: statistics only
  std::span<float> mean = {};  ///< [rows groups] out; layer norm only; empty: not stored
  std::span<float> inverse_deviation = {};  ///< [rows groups] out: r; empty: not stored
};
inline void check(const NormForward& a) {
  check_view(a.x);
  if (a.y.data != nullptr) check_same_shape(a.x, {a.y});
  MW_CHECK(a.groups > 0 && a.x.columns % a.groups == 0);
  MW_CHECK(a.epsilon >= 0);
  if (!a.weight.empty()) check_size(a.weight, a.x.columns / a.groups);
  if (!a.bias.empty()) {
    MW_CHECK(a.kind == NormKind::kLayerNorm);
    check_size(a.bias, a.x.columns / a.groups);
  }
  check_size_or_empty(a.mean, a.x.rows * a.groups);
  check_size_or_empty(a.inverse_deviation, a.x.rows * a.groups);
}

/// With xhat = (x - mean) r and g = dy * w:
///   dx = r (g - mean(g) - xhat mean(g xhat));  rms norm without the term mean(g).
struct NormBackwardInput {
  NormKind kind = NormKind::kLayerNorm;
  ConstMatrix x = {}, dy = {};
  ConstVector weight = {};  ///< [columns / groups] or empty
  float offset = 0;
  std::span<const float> mean = {},
                         inverse_deviation = {};  ///< from the forward pass; mean: layer norm only
  std::int64_t groups = 1;
  Matrix dx = {};
  bool accumulate = false;  ///< dx += instead of dx =: where a residual branch joins
};
inline void check(const NormBackwardInput& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  MW_CHECK(a.groups > 0 && a.x.columns % a.groups == 0);
  if (!a.weight.empty()) check_size(a.weight, a.x.columns / a.groups);
  check_statistics(a.kind, a.mean, a.inverse_deviation, a.x.rows * a.groups);
}

/// dweight += sum over rows of dy * xhat, dbias += sum over rows of dy.
struct NormBackwardWeight {
  NormKind kind = NormKind::kLayerNorm;
  ConstMatrix x = {}, dy = {};
  std::span<const float> mean = {}, inverse_deviation = {};
  std::int64_t groups = 1;
  std::span<float> dweight = {};  ///< [columns / groups], added to
  std::span<float> dbias = {};    ///< [columns / groups] or empty, added to
};
inline void check(const NormBackwardWeight& a) {
  check_same_shape(a.x, {a.dy});
  MW_CHECK(a.groups > 0 && a.x.columns % a.groups == 0);
  check_statistics(a.kind, a.mean, a.inverse_deviation, a.x.rows * a.groups);
  check_size(a.dweight, a.x.columns / a.groups);
  check_size_or_empty(a.dbias, a.x.columns / a.groups);
}

}  // namespace meshwright
