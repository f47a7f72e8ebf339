#include "core/plan/plan_numbers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace meshwright {
namespace {

TEST(DivisorsUpTo, AreTheSmallestInOrder) {
  EXPECT_EQ(divisors_up_to(12, 12), "1, 2, 3, 4, 6, 12");
  EXPECT_EQ(divisors_up_to(12, 5), "1, 2, 3, 4");
  EXPECT_EQ(divisors_up_to(36, 100), "1, 2, 3, 4, 6, 9, 12, 18, 36");
  EXPECT_EQ(divisors_up_to(7, 7), "1, 7");
  EXPECT_EQ(divisors_up_to(5040, 5040), "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20");
}

TEST(DivisorsUpTo, MatchTrialDivision) {
  for (std::int64_t number = 1; number <= 500; ++number)
    for (const std::int64_t largest : {number, number / 2, std::int64_t{16}}) {
      std::string expected;
      int count = 0;
      for (std::int64_t d = 1; d <= largest && count < 16; ++d)
        if (number % d == 0) expected += (count++ == 0 ? "" : ", ") + std::to_string(d);
      EXPECT_EQ(divisors_up_to(number, largest), expected) << number << " " << largest;
    }
}

// 2^61 - 1 is a prime. Trying all smaller numbers would take decades.
TEST(DivisorsUpTo, OfHugeNumbersTakeMilliseconds) {
  constexpr std::int64_t kPrime = (std::int64_t{1} << 61) - 1;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(divisors_up_to(kPrime, kPrime), "1, 2305843009213693951");
  EXPECT_EQ(divisors_up_to(kPrime, kPrime - 1), "1");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace meshwright
