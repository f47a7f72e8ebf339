/// Counter-based dropout: the mask is a pure function of a key (seed, step and operator) and of the
/// row and column in the whole tensor. So it does not depend on how the tensor is sharded, and
/// recomputation reproduces it.
///
/// The row index is mixed with the key by mixed_bits() (core/base/random.hpp), the result with
/// the column by the finalizer of MurmurHash3 (Appleby 2011); 24 bits of that are compared with the
/// probability. Kept elements are divided by 1 - probability, which preserves the mean.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/random.hpp"
#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_DROPOUT_KERNELS(X)  \
  X(dropout_forward,  DropoutForward)  \
  X(dropout_backward, DropoutBackward)
// clang-format on

struct DropoutMask {
  float probability = 0;  ///< of being dropped: in [0, 1)
  std::uint64_t key = 0;
  friend bool operator==(const DropoutMask&, const DropoutMask&) = default;
};

/// The part of the hash that all columns of a row share.
[[gnu::always_inline]] constexpr std::uint32_t dropout_row(std::uint64_t key, std::int64_t row) {
  return static_cast<std::uint32_t>(mixed_bits(key + mixed_bits(static_cast<std::uint64_t>(row))));
}
/// A number below `threshold` drops the element.
[[gnu::always_inline]] constexpr std::uint32_t dropout_threshold(float probability) {
  const float scaled = probability * 0x1p24F;
  const auto whole = static_cast<std::uint32_t>(scaled);
  return scaled - static_cast<float>(whole) < 0.5F ? whole : whole + 1;
}
[[gnu::always_inline]] constexpr bool is_kept(std::uint32_t row, std::int64_t column,
                                              std::uint32_t threshold) {
  std::uint32_t bits = row + static_cast<std::uint32_t>(column) * 0x9e3779b9U;
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bU;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35U;
  return ((bits ^ (bits >> 16)) >> 8) >= threshold;
}

/// y = x / (1 - probability) where kept, else 0.
struct DropoutForward {
  DropoutMask mask = {};
  std::span<const std::int64_t> rows = {};  ///< row indices in the whole tensor
  ConstMatrix x = {};                       ///< unsharded rows
  Matrix y = {};                            ///< may be x
  std::span<std::uint8_t> kept = {};        ///< [rows columns] out: 1 kept, 0 dropped
};
inline void check(const DropoutForward& a) {
  check_same_shape(a.x, {a.y});
  check_size(a.rows, a.x.rows);
  check_size(a.kept, a.x.rows * a.x.columns);
  MW_CHECK(a.mask.probability >= 0 && a.mask.probability < 1);
}

/// dx = dy / (1 - probability) where kept, else 0.
struct DropoutBackward {
  float probability = 0;
  std::span<const std::uint8_t> kept = {};
  ConstMatrix dy = {};
  Matrix dx = {};  ///< may be dy
};
inline void check(const DropoutBackward& a) {
  check_same_shape(a.dy, {a.dx});
  check_size(a.kept, a.dy.rows * a.dy.columns);
  MW_CHECK(a.probability >= 0 && a.probability < 1);
}

}  // namespace meshwright
