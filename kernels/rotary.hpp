/// Rotary position embedding (arXiv 2104.09864), and copies of parts of heads.
///
/// Pair i of the R rotated elements of a head is rotated by position * frequency[i]:
///   (a, b) → (a cos - b sin, a sin + b cos)
/// The gradient is the opposite rotation: the same kernel with `inverse`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_graph.hpp"
#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_ROTARY_KERNELS(X) \
  X(rotary_table, RotaryTable)       \
  X(rotary,       Rotary)            \
  X(copy_heads,   CopyHeads)
// clang-format on

/// Radians per position of the pairs of R = `rotated` elements, for sequences of this length.
std::vector<float> rotary_frequencies(std::int64_t rotated, const RotaryAngles& angles,
                                      std::int64_t sequence_length);

/// table[p][i] = factor(p) (cos, sin) of (first_position + p) * frequency[i]; computed in double.
/// The factor is scale (1 + growth log(1 + floor((first_position + p + 1) / interval))).
struct RotaryTable {
  std::span<const float> frequencies = {};  ///< [R / 2]
  std::int64_t first_position = 0, positions = 0;
  double scale = 1;
  QueryTemperature temperature = {};
  std::span<float> table = {};  ///< [positions, R / 2, 2]
};
constexpr std::int64_t intervals_before(const QueryTemperature& t, std::int64_t position) {
  return (position + 1) / t.interval;
}
inline void check(const RotaryTable& a) {
  MW_CHECK(a.positions >= 0 && a.first_position >= 0 && a.temperature.interval > 0);
  check_size(a.table, a.positions * 2 * std::ssize(a.frequencies));
}

struct Rotary {
  ConstMatrix x = {};  ///< [rows, heads head_size]
  Matrix y = {};       ///< may be x; elements that are not rotated are copied
  std::int64_t heads = 1, head_size = 0;
  std::int64_t first = 0, rotated = 0;  ///< elements [first, first + rotated) of every head; even
  RotaryPairs pairs = RotaryPairs::kHalves;
  std::span<const float> table = {};             ///< [positions, rotated / 2, 2], from position 0
  std::span<const std::int32_t> positions = {};  ///< [rows]: row of the table for each row of x
  bool inverse = false;
};
inline void check(const Rotary& a) {
  check_same_shape(a.x, {a.y});
  MW_CHECK(a.x.columns == a.heads * a.head_size);
  MW_CHECK(a.rotated >= 0 && a.rotated % 2 == 0);
  MW_CHECK(a.first >= 0 && a.first + a.rotated <= a.head_size);
  check_size(a.positions, a.x.rows);
  MW_CHECK(a.rotated == 0 || std::ssize(a.table) % a.rotated == 0);
}

/// Copies `count` elements of every head: y[r, h, to + i] = x[r, h, from + i]. One head of x goes
/// to all heads of y (the shared rotary key of latent attention, arXiv 2405.04434); several heads
/// of x are summed into one head of y (the gradient of that).
struct CopyHeads {
  ConstMatrix x = {};  ///< [rows, heads_x size_x]
  Matrix y = {};       ///< [rows, heads_y size_y]
  std::int64_t heads_x = 1, size_x = 0, from = 0;
  std::int64_t heads_y = 1, size_y = 0, to = 0;
  std::int64_t count = 0;
};
inline void check(const CopyHeads& a) {
  check_view(a.x);
  check_view(Matrix(a.y));
  MW_CHECK(a.x.rows == a.y.rows);
  MW_CHECK(a.x.columns == a.heads_x * a.size_x);
  MW_CHECK(a.y.columns == a.heads_y * a.size_y);
  MW_CHECK(a.heads_x == a.heads_y || a.heads_x == 1 || a.heads_y == 1);
  MW_CHECK(a.count >= 0 && a.from >= 0 && a.to >= 0);
  MW_CHECK(a.from + a.count <= a.size_x);
  MW_CHECK(a.to + a.count <= a.size_y);
}

}  // namespace meshwright
