#include "simulator/variation/expected_maximum.hpp"

#include <array>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Integral of 1 - P(x)^n over x > 0 minus that of P(x)^n over x < 0, P the normal CDF.
double integrated(int n) {
  constexpr int kSteps = 1000;
  constexpr double kFurthest = 10, kStep = kFurthest / kSteps;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double x = (i + 0.5) * kStep;
    const double above = std::erfc(-x / std::sqrt(2.0)) / 2, below = 1 - above;
    sum += 1 - std::pow(above, n) - std::pow(below, n);
  }
  return sum * kStep;
}

constexpr std::size_t kKept = 65;
std::array<double, kKept> first_values() {
  std::array<double, kKept> values{};
  for (std::size_t n = 1; n < kKept; ++n) values[n] = integrated(static_cast<int>(n));
  return values;
}

}  // namespace

double expected_maximum(int n) {
  MW_CHECK(n >= 1);
  static const std::array<double, kKept> values = first_values();
  const auto place = static_cast<std::size_t>(n);
  return place < kKept ? values[place] : integrated(n);
}

}  // namespace meshwright
