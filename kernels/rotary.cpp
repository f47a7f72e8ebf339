#include "kernels/rotary.hpp"

#include <cmath>

namespace meshwright {

std::vector<float> rotary_frequencies(std::int64_t rotated, const RotaryAngles& angles,
                                      std::int64_t sequence_length) {
  MW_CHECK(rotated >= 0 && rotated % 2 == 0);
  MW_CHECK(angles.base > 0);
  const bool is_long = !angles.long_divisors.empty() && sequence_length > angles.long_from;
  const std::vector<double>& divisors = is_long ? angles.long_divisors : angles.divisors;
  MW_CHECK(divisors.empty() || std::ssize(divisors) == rotated / 2);
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < rotated; i += 2) {
    const double divisor = divisors.empty() ? 1 : divisors[static_cast<std::size_t>(i / 2)];
    const double exponent = -static_cast<double>(i) / static_cast<double>(rotated);
    frequencies.push_back(static_cast<float>(std::pow(angles.base, exponent) / divisor));
  }
  return frequencies;
}

}  // namespace meshwright
