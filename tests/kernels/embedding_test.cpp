#include "kernels/embedding.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

class EmbeddingVariant : public VariantTest {};

const std::vector<std::int32_t> kIds{3, 0, 9, 3, 6, -1, 3};

TEST_P(EmbeddingVariant, LooksUpRowsAndGivesZerosForOthers) {
  TestMatrix table(7, 21, dtype(), 2), y(7, 21, dtype(), 1);
  table.random(1), y.random(2);
  run_kernel(kernels().embedding_forward, {.table = table, .ids = kIds, .y = y});
  for (std::int64_t n = 0; n < 7; ++n) {
    const std::int32_t id = kIds[static_cast<std::size_t>(n)];
    for (std::int64_t i = 0; i < 21; ++i) EXPECT_EQ(y(n, i), id >= 0 && id < 7 ? table(id, i) : 0);
  }
  EXPECT_TRUE(y.padding_is_untouched());
}

// Values are multiples of 1/64 up to 1, so sums of two are exact in fp32 and to 2^-8 in bf16.
TEST_P(EmbeddingVariant, AddsPositionsToTokens) {
  TestMatrix table(10, 600, dtype()), y(7, 600, dtype());
  table.random(1), y.random(2);
  const TestMatrix before = y;
  run_kernel(kernels().embedding_forward,
             {.table = table, .ids = kIds, .y = y, .accumulate = true});
  TestMatrix expected = before;
  for (std::int64_t n = 0; n < 7; ++n)
    for (std::int64_t i = 0; i < 600; ++i)
      if (kIds[static_cast<std::size_t>(n)] >= 0)
        expected.set(n, i, before(n, i) + table(kIds[static_cast<std::size_t>(n)], i));
  expect_close(y, expected, 0, "sum");
}

// Each row of the table gets the gradients of the tokens that read it: row 3 three of them. Two
// ranks with half of the rows each do the same.
TEST_P(EmbeddingVariant, ScattersGradientsToTheRowsRead) {
  TestMatrix dy(7, 33, dtype()), whole(10, 33), cut(10, 33);
  dy.random(1), whole.random(2), cut.random(2);
  const TestMatrix before = whole;
  run_kernel(kernels().embedding_backward, {.dy = dy, .ids = kIds, .dtable = whole});
  for (const std::int64_t first : {0, 5})
    run_kernel(
        kernels().embedding_backward,
        {.dy = dy, .ids = kIds, .first_row = first, .dtable = rows_of(Matrix(cut), first, 5)});
  EXPECT_TRUE(same_bits(whole, cut));
  for (std::int64_t i = 0; i < 33; ++i) {  // multiples of 1/64: exact
    EXPECT_EQ(whole(3, i), before(3, i) + dy(0, i) + dy(3, i) + dy(6, i));
    EXPECT_EQ(whole(9, i), before(9, i) + dy(2, i));
    EXPECT_EQ(whole(1, i), before(1, i));
  }
}

// As in a text: token 4 in more than half of the 217 places, token 0 in exactly the first 32 of the
// sorted order, tokens 5 to 9 in eight places each, and some of other ranks. Sums are exact.
TEST_P(EmbeddingVariant, ScattersGradientsOfFrequentTokens) {
  std::vector<std::int32_t> ids;
  for (int n = 0; n < 32; ++n) ids.push_back(0);
  for (int n = 0; n < 8; ++n)
    for (int id = 5; id < 10; ++id) ids.push_back(id);
  for (int n = 0; n < 20; ++n) ids.push_back(n % 2 == 0 ? -7 : 50);
  for (int n = 0; n < 125; ++n) ids.insert(ids.begin() + n, 4);
  const auto count = std::ssize(ids);
  ASSERT_EQ(count, 217);
  for (const std::int64_t columns : {33, 264}) {
    TestMatrix dy(count, columns, dtype()), table(10, columns), expected(10, columns);
    dy.random(1), table.random(2), expected.random(2);
    run_kernel(kernels().embedding_backward, {.dy = dy, .ids = ids, .dtable = table});
    run_kernel(reference().embedding_backward, {.dy = dy, .ids = ids, .dtable = expected});
    for (std::int64_t row = 0; row < 10; ++row)
      for (std::int64_t i = 0; i < columns; ++i) EXPECT_EQ(table(row, i), expected(row, i)) << row;
  }
}

MESHWRIGHT_ALL_VARIANTS(EmbeddingVariant);

}  // namespace
}  // namespace meshwright
