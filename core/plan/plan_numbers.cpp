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

std::string divisors_up_to(std::int64_t number, std::int64_t largest) {
  constexpr std::size_t kMostListed = 16;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= std::min(number, largest) && divisors.size() < kMostListed; ++d)
    if (number % d == 0) divisors.push_back(d);
  return fmt::format("{}", fmt::join(divisors, ", "));
}

}  // namespace meshwright
