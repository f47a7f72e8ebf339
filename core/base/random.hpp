/// Pseudorandom numbers of searches: the same on every platform. Draws of a simulation are
/// counter-based, see simulator/variation/random_numbers.hpp.
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

}  // namespace meshwright
