/// Matrix products. Notation: m rows and n columns of the result, k summed over; E experts.
///
/// A linear layer y = x W + b with W [in, out]:
///   forward          y  = x W + b          Gemm{.a = x,  .b = W,  .c = y, .bias = b}
///   input gradient   dx = dy W^T           Gemm{.a = dy, .b = W,  .transpose_b = true, .c = dx}
///   weight gradient  dW += x^T dy          Gemm{.a = x,  .transpose_a = true, .b = dy, .c = dW,
///                                               .beta = 1}
///   bias gradient    BiasGradient (elementwise.hpp)
/// Sums are accumulated in fp32 for every dtype; a, b and c may have different dtypes.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/activation.hpp"
#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_GEMM_KERNELS(X)          \
  X(gemm,                Gemm)              \
  X(grouped_gemm,        GroupedGemm)       \
  X(grouped_gemm_weight, GroupedGemmWeight)
// clang-format on

/// c = op(a) op(b) + beta c + bias, op(x) being x or its transpose. beta = 0 ignores the previous
/// contents of c (even NaN). k = 0 gives beta c + bias. 2 m n k flop.
struct Gemm {
  ConstMatrix a = {};  ///< [m, k], or [k, m] if transpose_a
  bool transpose_a = false;
  ConstMatrix b = {};  ///< [k, n], or [n, k] if transpose_b
  bool transpose_b = false;
  Matrix c = {};  ///< [m, n]; overlaps neither a nor b
  float beta = 0;
  ConstVector bias = {};  ///< [n] or empty: added to every row
  /// [m, n] or empty: receives GELU (tanh) of c, possibly of c before rounding.
  Matrix gelu = {};
  /// [m, n] or empty: c = op(a) op(b) times the derivative of GELU (tanh) at `slope_at`, element by
  /// element: the gradient of GELU's input. Cannot be combined with beta, bias or `gelu`.
  ConstMatrix slope_at = {};
};
inline void check(const Gemm& g) {
  check_view(g.a);
  check_view(g.b);
  check_view(Matrix(g.c));
  MW_CHECK(g.c.rows == (g.transpose_a ? g.a.columns : g.a.rows));
  MW_CHECK(g.c.columns == (g.transpose_b ? g.b.rows : g.b.columns));
  MW_CHECK((g.transpose_a ? g.a.rows : g.a.columns) == (g.transpose_b ? g.b.columns : g.b.rows));
  if (!g.bias.empty()) check_size(g.bias, g.c.columns);
  if (!g.gelu.empty()) check_shape(g.gelu, g.c.rows, g.c.columns);
  if (g.slope_at.empty()) return;
  check_shape(g.slope_at, g.c.rows, g.c.columns);
  MW_CHECK(g.beta == 0 && g.bias.empty() && g.gelu.empty());
}
inline bool has_gelu(const Gemm& g) { return !g.gelu.empty() || !g.slope_at.empty(); }

/// For back ends without fused GELU: calls run(arguments) for the product and for the activation.
template <class Run>
void run_gelu_apart(const Gemm& g, const Run& run) {
  Gemm product = g;
  product.gelu = {};
  product.slope_at = {};
  run(product);
  if (!g.gelu.empty()) run(ActivationForward{.x = g.c, .y = g.gelu});
  if (!g.slope_at.empty()) run(ActivationBackward{.x = g.slope_at, .dy = g.c, .dx = g.c});
}

/// One product per expert on the rows routed to it: rows [offset[e], offset[e+1]) of x times the
/// weight of expert e.  y_e = x_e op(W_e) + bias_e. Experts without rows are skipped.
struct GroupedGemm {
  ConstMatrix x = {};              ///< [rows, k]
  ConstMatrix weights = {};        ///< E stacked matrices [k, n]: [E k, n]; [E n, k] if transposed
  bool transpose_weights = false;  ///< the input gradient: dx_e = dy_e W_e^T
  Matrix y = {};                   ///< [rows, n]
  ConstMatrix bias = {};           ///< [E, n] or empty
  std::span<const std::int64_t> offsets = {};  ///< E + 1 row offsets, ascending from 0 to x.rows
};
inline void check(const GroupedGemm& g) {
  const std::int64_t experts = std::ssize(g.offsets) - 1;
  MW_CHECK(!g.offsets.empty());
  check_view(g.x);
  if (g.transpose_weights)
    check_shape(g.weights, experts * g.y.columns, g.x.columns);
  else
    check_shape(g.weights, experts * g.x.columns, g.y.columns);
  check_shape(g.y, g.x.rows, g.y.columns);
  if (!g.bias.empty()) check_shape(g.bias, experts, g.y.columns);
}

/// Weight gradients of the experts: dW_e += x_e^T dy_e.
struct GroupedGemmWeight {
  ConstMatrix x = {};                          ///< [rows, k]
  ConstMatrix dy = {};                         ///< [rows, n]
  Matrix dweights = {};                        ///< [E k, n]; added to
  std::span<const std::int64_t> offsets = {};  ///< as above
};
inline void check(const GroupedGemmWeight& g) {
  MW_CHECK(!g.offsets.empty());
  check_view(g.x);
  check_shape(g.dy, g.x.rows, g.dy.columns);
  check_shape(g.dweights, (std::ssize(g.offsets) - 1) * g.x.columns, g.dy.columns);
}

/// The individual products of a group. The host must be able to read the offsets.
inline std::int64_t expert_count(std::span<const std::int64_t> offsets) {
  return static_cast<std::int64_t>(offsets.size()) - 1;
}
Gemm product_of(const GroupedGemm& group, std::int64_t expert);
Gemm product_of(const GroupedGemmWeight& group, std::int64_t expert);

/// Calls run(product) for each of them.
template <class Group, class Run>
void run_each_product(const Group& group, const Run& run) {
  check_offsets(group.offsets, group.x.rows);
  for (std::int64_t e = 0; e < expert_count(group.offsets); ++e) run(product_of(group, e));
}

}  // namespace meshwright
