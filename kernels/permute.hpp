/// Permutes tokens to experts and back. A slot is one (token, choice): slot = token * K + k.
///
///   dispatch            rows = GatherRows(x, slot_of_row, copies = K)
///   dispatch gradient   dx   = CombineRows(drows, row_of_slot, copies = K)
///   combine             y    = CombineRows(rows, row_of_slot, copies = K, weights)
///   combine gradients   drows = GatherRows(dy, slot_of_row, copies = K, scales = weights)
///                       dweights = CombineWeightGradient(dy, rows, row_of_slot)
/// Rows that arrive from several ranks are sorted by expert with copies = 1.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_PERMUTE_KERNELS(X)               \
  X(sort_by_expert,          SortByExpert)          \
  X(gather_rows,             GatherRows)            \
  X(combine_rows,            CombineRows)           \
  X(combine_weight_gradient, CombineWeightGradient)
// clang-format on

/// Stable sort of slots by expert. O(slots + experts).
struct SortByExpert {
  std::span<const std::int32_t> experts = {};  ///< [slots], each in [0, E)
  std::span<std::int32_t> slot_of_row = {};    ///< [slots] out
  std::span<std::int32_t> row_of_slot = {};    ///< [slots] out: the inverse
  std::span<std::int32_t> counts = {};         ///< [E] out: slots per expert
};
inline void check(const SortByExpert& a) {
  check_size(a.slot_of_row, std::ssize(a.experts));
  check_size(a.row_of_slot, std::ssize(a.experts));
}

/// y[r] = scales[i] * x[i / copies] with i = index[r]; zeros for an index of -1.
struct GatherRows {
  ConstMatrix x = {};
  std::span<const std::int32_t> index = {};  ///< [rows of y]
  std::int64_t copies = 1;
  std::span<const float> scales = {};  ///< [copies * rows of x], or empty: 1
  Matrix y = {};
};
inline void check(const GatherRows& a) {
  MW_CHECK(a.copies > 0);
  check_view(a.x);
  check_shape(a.y, std::ssize(a.index), a.x.columns);
  check_size_or_empty(a.scales, a.copies * a.x.rows);
}

/// y[n] = sum over k of weights[n K + k] * x[index[n K + k]]; an index of -1 adds nothing.
struct CombineRows {
  ConstMatrix x = {};
  std::span<const std::int32_t> index = {};  ///< [rows of y * copies]
  std::int64_t copies = 1;                   ///< K
  std::span<const float> weights = {};       ///< [rows of y * copies], or empty: 1
  Matrix y = {};
};
inline void check(const CombineRows& a) {
  MW_CHECK(a.copies > 0);
  check_view(a.x);
  check_shape(a.y, a.y.rows, a.x.columns);
  check_size(a.index, a.copies * a.y.rows);
  check_size_or_empty(a.weights, a.copies * a.y.rows);
}

/// dweights[n K + k] = dy[n] . x[index[n K + k]]; 0 for an index of -1.
struct CombineWeightGradient {
  ConstMatrix dy = {}, x = {};
  std::span<const std::int32_t> index = {};
  std::int64_t copies = 1;
  std::span<float> dweights = {};  ///< out
};
inline void check(const CombineWeightGradient& a) {
  MW_CHECK(a.copies > 0);
  check_view(a.x);
  check_shape(a.dy, a.dy.rows, a.x.columns);
  check_size(a.index, a.copies * a.dy.rows);
  check_size(a.dweights, a.copies * a.dy.rows);
}

}  // namespace meshwright
