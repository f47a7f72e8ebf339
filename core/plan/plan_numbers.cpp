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
  constexpr std::int64_t kMostTried = 1'000'000;
  std::vector<std::int64_t> divisors, of_pairs;
  const auto add = [&](std::vector<std::int64_t>& list, std::int64_t d) {
    if (d <= largest) list.push_back(d);
  };
  for (std::int64_t d = 1; d <= std::min(number / d, kMostTried); ++d) {
    if (number % d != 0) continue;
    add(divisors, d);
    if (d != number / d) add(of_pairs, number / d);
  }
  divisors.insert(divisors.end(), of_pairs.rbegin(), of_pairs.rend());
  divisors.resize(std::min(divisors.size(), kMostListed));
  return fmt::format("{}", fmt::join(divisors, ", "));
}

}  // namespace meshwright
