#include "kernels/float8.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

/// All non-negative e4m3 numbers (arXiv 2209.05433, table 1): 2^-9 f below 2^-6, else
/// 2^(e - 7) (1 + f / 8); exponent 15 with fraction 7 is NaN.
std::vector<float> all_e4m3() {
  std::vector<float> numbers;
  for (int f = 0; f < 8; ++f) numbers.push_back(std::ldexp(static_cast<float>(f), -9));
  for (int e = 1; e < 16; ++e)
    for (int f = 0; f < 8; ++f)
      if (e < 15 || f < 7) numbers.push_back(std::ldexp(1 + static_cast<float>(f) / 8, e - 7));
  return numbers;
}

TEST(Float8, PreservesRepresentableNumbers) {
  EXPECT_EQ(all_e4m3().back(), kLargestFloat8);
  for (const float x : all_e4m3()) {
    EXPECT_EQ(rounded_to_e4m3(x), x);
    EXPECT_EQ(rounded_to_e4m3(-x), -x);
  }
}

// Next to every midpoint of two adjacent numbers the nearer one; on it the one with the even
// fraction, which has an even index among all numbers.
TEST(Float8, RoundsToNearestEven) {
  const std::vector<float> numbers = all_e4m3();
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    const float middle = (numbers[i] + numbers[i + 1]) / 2;
    EXPECT_EQ(rounded_to_e4m3(std::nextafter(middle, 0.0F)), numbers[i]) << middle;
    EXPECT_EQ(rounded_to_e4m3(std::nextafter(middle, 1e9F)), numbers[i + 1]) << middle;
    EXPECT_EQ(rounded_to_e4m3(middle), numbers[i % 2 == 0 ? i : i + 1]) << middle;
  }
}

class Float8Variant : public VariantTest {};

// The first block's largest is 448, so its scale is 1: 3.3 lies between 3.25 and 3.5, 2^-12 nearest
// to 0. The second block's largest is 224: scale 1/2, so 3.3 is 6.6 there, nearest to 6.5 / 2.
// 3.3 itself is 3.296875 in bf16; the same neighbors are nearest.
TEST_P(Float8Variant, ScalesEveryBlockByItsLargest) {
  TestMatrix x(2, 200, dtype(), 5), y(2, 200, dtype(), 1);
  x.set(0, 5, -448), x.set(0, 6, 3.3), x.set(0, 127, 0x1p-12);
  x.set(0, 128, 224), x.set(0, 199, 3.3);
  run_kernel(kernels().round_to_float8, {.x = x, .y = y});
  EXPECT_EQ(y(0, 5), -448);
  EXPECT_EQ(y(0, 6), 3.25);
  EXPECT_EQ(y(0, 127), 0);
  EXPECT_EQ(y(0, 128), 224);
  EXPECT_EQ(y(0, 199), 3.25);
  for (std::int64_t i = 0; i < 200; ++i) EXPECT_EQ(y(1, i), 0);
  EXPECT_TRUE(y.padding_is_untouched());
}

TEST_P(Float8Variant, EqualsTheReferenceBitwise) {
  for (const std::int64_t columns : {1, 127, 128, 129, 700}) {
    TestMatrix x(3, columns, dtype(), 2), actual(3, columns, dtype()),
        expected(3, columns, dtype());
    x.random(3, 0.37);
    run_kernel(kernels().round_to_float8, {.x = x, .y = actual});
    run_kernel(reference().round_to_float8, {.x = x, .y = expected});
    EXPECT_TRUE(same_bits(actual, expected)) << columns;
  }
}

MESHWRIGHT_ALL_VARIANTS(Float8Variant);

}  // namespace
}  // namespace meshwright
