/// Sums, casts and losses element by element.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_ELEMENTWISE_KERNELS(X)                  \
  X(add,                         Add)                      \
  X(bias_add,                    BiasAdd)                  \
  X(bias_gradient,               BiasGradient)             \
  X(grouped_bias_gradient,       GroupedBiasGradient)      \
  X(row_gate_forward,            RowGateForward)           \
  X(row_gate_backward,           RowGateBackward)          \
  X(softcap_forward,             SoftcapForward)           \
  X(softcap_backward,            SoftcapBackward)          \
  X(reduce,                      Reduce)                   \
  X(cast,                        Cast)                     \
  X(fill,                        Fill)                     \
  X(total,                       Total)                    \
  X(mean_squared_error_forward,  MeanSquaredErrorForward)  \
  X(mean_squared_error_gradient, MeanSquaredErrorGradient)
// clang-format on

/// y = a + b: residual connections.
struct Add {
  ConstMatrix a = {}, b = {};
  Matrix y = {};  ///< may be a or b
};
inline void check(const Add& a) { check_same_shape(a.a, {a.b, a.y}); }

/// y = x + bias in every row: applied after the all-reduce of a row-parallel linear layer.
struct BiasAdd {
  ConstMatrix x = {};
  ConstVector bias = {};  ///< [columns]
  Matrix y = {};          ///< may be x
};
inline void check(const BiasAdd& a) {
  check_same_shape(a.x, {a.y});
  check_size(a.bias, a.x.columns);
}

/// dbias += sum of the rows of dy.
struct BiasGradient {
  ConstMatrix dy = {};
  std::span<float> dbias = {};  ///< [columns], added to
};
inline void check(const BiasGradient& a) {
  check_view(a.dy);
  check_size(a.dbias, a.dy.columns);
}
/// One bias per expert: row e of dbias += sum of rows [offset[e], offset[e+1]) of dy.
struct GroupedBiasGradient {
  ConstMatrix dy = {};
  Matrix dbias = {};                           ///< [E, columns], fp32, added to
  std::span<const std::int64_t> offsets = {};  ///< E + 1 row offsets
};
inline void check(const GroupedBiasGradient& a) {
  check_view(a.dy);
  MW_CHECK(!a.offsets.empty());
  check_shape(a.dbias, std::ssize(a.offsets) - 1, a.dy.columns);
  MW_CHECK(a.dbias.dtype == Dtype::kFp32);
}

/// y = sigmoid(gate[row]) x: the gate of shared experts.
struct RowGateForward {
  ConstMatrix x = {};
  ConstMatrix gate = {};  ///< [rows, 1]
  Matrix y = {};          ///< may be x
};
inline void check(const RowGateForward& a) {
  check_same_shape(a.x, {a.y});
  check_shape(a.gate, a.x.rows, 1);
}
struct RowGateBackward {
  ConstMatrix x = {}, gate = {}, dy = {};
  Matrix dx = {};     ///< may be dy
  Matrix dgate = {};  ///< [rows, 1]
};
inline void check(const RowGateBackward& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  check_same_shape(a.gate, {a.dgate});
  check_shape(a.gate, a.x.rows, 1);
}

/// y = cap tanh(x / cap): logits of Gemma 2.
struct SoftcapForward {
  ConstVector x = {};
  Vector y = {};  ///< may be x
  float cap = 1;
};
inline void check(const SoftcapForward& a) {
  check_view(a.x);
  check_size(a.y, a.x.size);
  MW_CHECK(a.cap > 0);
}
/// dx = dy (1 - (y / cap)^2).
struct SoftcapBackward {
  ConstVector y = {}, dy = {};
  Vector dx = {};  ///< may be dy
  float cap = 1;
};
inline void check(const SoftcapBackward& a) {
  check_view(a.y);
  check_size(a.dy, a.y.size);
  check_size(a.dx, a.y.size);
  MW_CHECK(a.cap > 0);
}

enum class Reduction : std::uint8_t { kSum, kMaximum };

/// into = into + from, or the maximum of both: one step of a reduction across ranks. bf16 is added
/// in fp32 and rounded once.
struct Reduce {
  Reduction reduction = Reduction::kSum;
  Vector into = {};
  ConstVector from = {};
};
inline void check(const Reduce& a) {
  check_view(a.into);
  check_size(a.from, a.into.size);
}

/// y = scale x, rounded to nearest even if y is bf16. Also used for plain copies.
struct Cast {
  ConstVector x = {};
  Vector y = {};
  float scale = 1;
};
inline void check(const Cast& a) {
  check_view(a.x);
  check_size(a.y, a.x.size);
}

struct Fill {
  Vector y = {};
  float value = 0;
};
inline void check(const Fill& a) { check_view(a.y); }

/// total = scale * sum of x (in double, by ascending index): the loss from per-token losses.
struct Total {
  std::span<const float> x = {};
  float scale = 1;
  float* total = nullptr;
};
inline void check(const Total& a) { MW_CHECK(a.total != nullptr); }

/// loss[row] = mean over columns of (x - target)^2; dx = scale * 2 (x - target) / columns.
struct MeanSquaredErrorForward {
  ConstMatrix x = {}, target = {};
  std::span<float> loss = {};  ///< [rows]
};
inline void check(const MeanSquaredErrorForward& a) {
  check_same_shape(a.x, {a.target});
  check_size(a.loss, a.x.rows);
}
struct MeanSquaredErrorGradient {
  ConstMatrix x = {}, target = {};
  float scale = 1;  ///< 1 / rows of the batch for a mean
  Matrix dx = {};   ///< may be x
};
inline void check(const MeanSquaredErrorGradient& a) { check_same_shape(a.x, {a.target, a.dx}); }

}  // namespace meshwright
