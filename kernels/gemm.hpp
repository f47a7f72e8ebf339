/// Matrix products. Letters: m rows of the result, n columns, k summed; E experts.
///
/// A linear layer y = x W + b with W [in, out]:
///   forward          y  = x W + b          Gemm{.a = x,  .b = W,  .c = y, .bias = b}
///   input gradient   dx = dy W^T           Gemm{.a = dy, .b = W,  .transpose_b = true, .c = dx}
///   weight gradient  dW += x^T dy          Gemm{.a = x,  .transpose_a = true, .b = dy, .c = dW,
///                                               .beta = 1}
///   bias gradient    BiasGradient (elementwise.hpp)
/// Sums are kept in fp32 whatever the storage; a, b and c may have different dtypes.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/activation.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

/// c = op(a) op(b) + beta c + bias; op transposes or not. beta = 0 ignores what c held (even NaN).
/// k = 0 gives beta c + bias. 2 m n k flop.
struct Gemm {
  ConstMatrix a = {};  ///< [m, k], or [k, m] if transpose_a
  bool transpose_a = false;
  ConstMatrix b = {};  ///< [k, n], or [n, k] if transpose_b
  bool transpose_b = false;
  Matrix c = {};  ///< [m, n]; overlaps neither a nor b
  float beta = 0;
  ConstVector bias = {};  ///< [n] or empty: added to every row
  /// [m, n] or empty: becomes GELU (tanh) of c, perhaps of what c is before it is rounded.
  Matrix gelu = {};
  /// [m, n] or empty: c = op(a) op(b) times the slope of GELU (tanh) there, element by element: the
  /// gradient of what GELU was taken of. Goes without beta, bias and `gelu`.
  ConstMatrix slope_at = {};
};
inline bool has_gelu(const Gemm& g) { return !g.gelu.empty() || !g.slope_at.empty(); }

/// Where no product has a GELU of its own: calls run(arguments) for the product and what follows.
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
  ConstMatrix x = {};  ///< [rows, k]
  ConstMatrix weights =
      {};  ///< E matrices [k, n] under each other: [E k, n]; [E n, k] if transposed
  bool transpose_weights = false;  ///< the input gradient: dx_e = dy_e W_e^T
  Matrix y = {};                   ///< [rows, n]
  ConstMatrix bias = {};           ///< [E, n] or empty
  std::span<const std::int64_t> offsets =
      {};  ///< E + 1 numbers of rows, ascending, from 0 to all of them
};

/// Weight gradients of the experts: dW_e += x_e^T dy_e.
struct GroupedGemmWeight {
  ConstMatrix x = {};                          ///< [rows, k]
  ConstMatrix dy = {};                         ///< [rows, n]
  Matrix dweights = {};                        ///< [E k, n]; added to
  std::span<const std::int64_t> offsets = {};  ///< as above
};

/// The single products that a group consists of; where the host can read the offsets.
inline std::int64_t expert_count(std::span<const std::int64_t> offsets) {
  return static_cast<std::int64_t>(offsets.size()) - 1;
}
Gemm product_of(const GroupedGemm& group, std::int64_t expert);
Gemm product_of(const GroupedGemmWeight& group, std::int64_t expert);

}  // namespace meshwright
