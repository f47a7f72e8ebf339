#include "kernels/rotary.hpp"

#include <cmath>

namespace meshwright {

std::vector<float> rotary_frequencies(std::int64_t rotated, double base) {
  MW_CHECK(rotated >= 0 && rotated % 2 == 0);
  MW_CHECK(base > 0);
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < rotated; i += 2)
    frequencies.push_back(
        static_cast<float>(std::pow(base, -static_cast<double>(i) / static_cast<double>(rotated))));
  return frequencies;
}

}  // namespace meshwright
