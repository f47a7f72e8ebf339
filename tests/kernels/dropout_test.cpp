#include "kernels/dropout.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

std::vector<bool> mask_of(std::uint64_t key, std::int64_t row, std::int64_t columns,
                          float probability) {
  std::vector<bool> kept;
  for (std::int64_t i = 0; i < columns; ++i)
    kept.push_back(is_kept(dropout_row(key, row), i, dropout_threshold(probability)));
  return kept;
}

// 10^6 draws with probability 0.3: the fraction that is dropped has a deviation of
// sqrt(0.3 * 0.7 / 10^6) = 4.6e-4; five of them are 2.3e-3.
TEST(DropoutMask, DropsTheExpectedShare) {
  std::int64_t dropped = 0;
  for (std::int64_t row = 0; row < 1000; ++row)
    for (const bool kept : mask_of(7, row, 1000, 0.3F)) dropped += kept ? 0 : 1;
  EXPECT_NEAR(static_cast<double>(dropped) / 1e6, 0.3, 2.3e-3);
}

TEST(DropoutMask, DependsOnlyOnKeyRowAndColumn) {
  const std::vector<bool> mask = mask_of(1, 5, 200, 0.5F);
  EXPECT_EQ(mask, mask_of(1, 5, 200, 0.5F));
  EXPECT_NE(mask, mask_of(2, 5, 200, 0.5F));
  EXPECT_NE(mask, mask_of(1, 6, 200, 0.5F));
  EXPECT_EQ(std::vector<bool>(mask.begin(), mask.begin() + 50), mask_of(1, 5, 50, 0.5F));
}

// Adjacent rows and columns agree as often as by chance: half of 10^5 pairs, with a deviation of
// sqrt(1/4 / 10^5) = 1.6e-3.
TEST(DropoutMask, DoesNotDependOnNeighbors) {
  int same_as_right = 0, same_as_below = 0, pairs = 0;
  for (std::int64_t row = 0; row < 100; ++row) {
    const std::vector<bool> mask = mask_of(3, row, 1001, 0.5F);
    const std::vector<bool> below = mask_of(3, row + 1, 1001, 0.5F);
    for (std::size_t i = 0; i < 1000; ++i, ++pairs) {
      same_as_right += mask[i] == mask[i + 1] ? 1 : 0;
      same_as_below += mask[i] == below[i] ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(same_as_right) / pairs, 0.5, 8e-3);
  EXPECT_NEAR(static_cast<double>(same_as_below) / pairs, 0.5, 8e-3);
}

class DropoutVariant : public VariantTest {};

// Probability 0.75: kept elements are multiplied by 4, exactly.
TEST_P(DropoutVariant, ForwardAndBackwardKeepTheSameElements) {
  for (const std::int64_t columns : {1, 17, 513, 1100}) {
    const std::vector<std::int64_t> rows{4, 0, 1'000'000'000'000};
    TestMatrix x(3, columns, dtype(), 3), y(3, columns, dtype()), dx(3, columns, dtype(), 2);
    x.random(1);
    std::vector<std::uint8_t> kept(static_cast<std::size_t>(3 * columns));
    const DropoutMask mask{.probability = 0.75F, .key = 11};
    run_kernel(kernels().dropout_forward,
               {.mask = mask, .rows = rows, .x = x, .y = y, .kept = kept});
    run_kernel(kernels().dropout_backward, {.probability = 0.75F, .kept = kept, .dy = x, .dx = dx});
    for (std::int64_t r = 0; r < 3; ++r) {
      const std::vector<bool> expected =
          mask_of(11, rows[static_cast<std::size_t>(r)], columns, 0.75F);
      for (std::int64_t i = 0; i < columns; ++i) {
        const bool is = expected[static_cast<std::size_t>(i)];
        EXPECT_EQ(kept[static_cast<std::size_t>(r * columns + i)], is ? 1 : 0);
        EXPECT_EQ(y(r, i), is ? 4 * x(r, i) : 0);
        EXPECT_EQ(dx(r, i), is ? 4 * x(r, i) : 0);
      }
    }
    EXPECT_TRUE(dx.padding_is_untouched());
  }
}

MESHWRIGHT_ALL_VARIANTS(DropoutVariant);

}  // namespace
}  // namespace meshwright
