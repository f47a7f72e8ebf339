/// Pseudorandom numbers: the same on every platform. Draws of a simulation are counter-based, see
/// simulator/variation/random_numbers.hpp.
#pragma once

#include <cstdint>

namespace meshwright {

/// xorshift32 (G. Marsaglia, 2003): advances `state`, which must not be 0, and returns it.
constexpr std::uint32_t xorshift32(std::uint32_t& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

/// splitmix64 (Steele, Lea and Flood, 2014): one step from `x`. Counter-based: initial parameters
/// and dropout masks.
[[gnu::always_inline]] constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace meshwright
