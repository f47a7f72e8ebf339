#include "core/plan/plan_numbers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace meshwright {

std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product))
      return std::numeric_limits<std::int64_t>::max();
  return product;
}

std::vector<std::int64_t> divisors(std::int64_t number) {
  constexpr std::int64_t kMostTried = 1 << 20;
  std::vector<std::int64_t> found, cofactors;
  for (std::int64_t d = 1; d <= std::min(number / d, kMostTried); ++d) {
    if (number % d != 0) continue;
    found.push_back(d);
    if (d != number / d) cofactors.push_back(number / d);
  }
  found.insert(found.end(), cofactors.rbegin(), cofactors.rend());
  return found;
}

std::string divisors_up_to(std::int64_t number, std::int64_t largest) {
  constexpr std::ptrdiff_t kMostListed = 16;
  const std::vector<std::int64_t> all = divisors(number);
  const auto count = std::ranges::upper_bound(all, largest) - all.begin();
  return fmt::format("{}",
                     fmt::join(all.begin(), all.begin() + std::min(count, kMostListed), ", "));
}

}  // namespace meshwright
