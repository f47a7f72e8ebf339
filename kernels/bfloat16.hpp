/// bfloat16: the upper half of an fp32 number (8 bits of exponent, 7 of fraction).
#pragma once

#include <bit>
#include <cstdint>

namespace meshwright {

[[gnu::always_inline]] inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest, ties to even. Overflow gives infinity; NaN stays (a quiet) NaN with its sign.
[[gnu::always_inline]] inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x0040U;  // the quiet bit: no payload becomes infinity
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<std::uint16_t>(is_nan ? nan : rounded);
}

}  // namespace meshwright
