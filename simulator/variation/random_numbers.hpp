/// Counter-based random numbers: the n-th number of a stream is a pure function of (seed, stream,
/// n), so that draws can be made in any order and by any number of threads.
///
/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC11).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace meshwright {

using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// Four independent standard normal numbers by Box-Muller: sqrt(-2 ln u) times cosine and sine of 2
/// pi v, with u in (0, 1] in steps of 2^-32, hence at most 6.7 standard deviations.
inline std::array<double, 4> four_normals(std::uint64_t seed, std::uint64_t stream,
                                          std::uint64_t number) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const PhiloxBlock bits = philox4x32_10({low(number), high(number), low(stream), high(stream)},
                                         {low(seed), high(seed)});
  constexpr double kStep = 1.0 / 4294967296.0;  // 2^-32
  std::array<double, 4> normals{};
  for (std::size_t i = 0; i < 4; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log((bits[i] + 1.0) * kStep));
    const double angle = 2.0 * std::numbers::pi * bits[i + 1] * kStep;
    normals[i] = radius * std::cos(angle);
    normals[i + 1] = radius * std::sin(angle);
  }
  return normals;
}

}  // namespace meshwright
