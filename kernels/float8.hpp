/// Rounding to fp8 for dispatch to experts (DeepSeek-V3, arXiv 2412.19437, section 3.3): e4m3
/// (4 bits of exponent, 3 of fraction, no infinity, largest number 448; arXiv 2209.05433) with one
/// fp32 scale per 128 elements of a row.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_FLOAT8_KERNELS(X) \
  X(round_to_float8, RoundToFloat8)
// clang-format on

inline constexpr std::int64_t kFloat8Block = 128;  ///< elements that share a scale
inline constexpr float kLargestFloat8 = 448;

/// The nearest e4m3 number, ties to even, for |x| <= 448. Below 2^-6 numbers are 2^-9 apart.
[[gnu::always_inline]] constexpr float rounded_to_e4m3(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits & 0x80000000U, magnitude = bits & 0x7fffffffU;
  // Normal numbers: drops 20 of the 23 bits of fp32's fraction.
  const std::uint32_t normal = (magnitude + 0x7ffffU + ((magnitude >> 20) & 1U)) & 0xfff00000U;
  // Small numbers: adding 2^14, whose last bit is 2^-9, rounds to multiples of 2^-9.
  const float small = (std::bit_cast<float>(magnitude) + 0x1p14F) - 0x1p14F;
  const std::uint32_t rounded =
      magnitude < 0x3c800000U ? std::bit_cast<std::uint32_t>(small) : normal;  // 2^-6
  return std::bit_cast<float>(sign | rounded);
}

/// y = scale e4m3(x / scale), scale = (largest |x| of the block) / 448; zeros stay zeros.
struct RoundToFloat8 {
  ConstMatrix x = {};
  Matrix y = {};  ///< may be x
};
inline void check(const RoundToFloat8& a) { check_same_shape(a.x, {a.y}); }

}  // namespace meshwright
