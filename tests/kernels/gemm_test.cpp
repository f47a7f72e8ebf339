#include "kernels/gemm.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

// [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]; twice that plus half of 10, plus the bias (1, -1).
TEST(GemmReference, MultipliesByHand) {
  TestMatrix a(2, 2), b(2, 2), c(2, 2), bias(1, 2);
  for (int i = 0; i < 4; ++i) a.set(i, i + 1), b.set(i, i + 5), c.set(i, 10);
  bias.set(0, 1), bias.set(1, -1);
  run_kernel(reference_kernels().gemm,
             {.a = a, .b = b, .c = c, .alpha = 2, .beta = 0.5F, .bias = bias});
  EXPECT_EQ(c(0, 0), 44);
  EXPECT_EQ(c(0, 1), 48);
  EXPECT_EQ(c(1, 0), 92);
  EXPECT_EQ(c(1, 1), 104);
}

struct Shape {
  std::int64_t m, n, k;
};

class GemmVariant : public VariantTest {
 protected:
  /// Values are at most 1, so a sum of k products is at most k and each of its k roundings at most
  /// 2^-24 k: k^2 2^-24 in the worst case. Random signs make k 2^-24 generous.
  static double error_of(std::int64_t k) { return static_cast<double>(k + 8) * 0x1p-24; }

  void expect_product(Shape s, bool transpose_a, bool transpose_b, Gemm extra, Dtype c_dtype) {
    TestMatrix a =
        transpose_a ? TestMatrix(s.k, s.m, dtype(), 3) : TestMatrix(s.m, s.k, dtype(), 3);
    TestMatrix b =
        transpose_b ? TestMatrix(s.n, s.k, dtype(), 1) : TestMatrix(s.k, s.n, dtype(), 1);
    TestMatrix bias(1, s.n, dtype());
    a.random(1), b.random(2), bias.random(4);
    TestMatrix c(s.m, s.n, c_dtype, 5), kept(s.m, s.n, c_dtype, 2);
    c.random(3);
    if (extra.beta == 0) c.fill(std::numeric_limits<double>::quiet_NaN());
    TestMatrix expected = c, expected_kept = kept;
    extra.a = a, extra.b = b;
    extra.transpose_a = transpose_a, extra.transpose_b = transpose_b;
    if (extra.activation != GemmActivation::kNone) extra.bias = bias;
    extra.c = c;
    if (extra.activation != GemmActivation::kNone) extra.before_activation = kept;
    run_kernel(kernels().gemm, extra);
    extra.c = expected;
    if (extra.activation != GemmActivation::kNone) extra.before_activation = expected_kept;
    run_kernel(reference().gemm, extra);
    const std::string what = "m=" + std::to_string(s.m) + " n=" + std::to_string(s.n) +
                             " k=" + std::to_string(s.k) + (transpose_a ? " T" : " N") +
                             (transpose_b ? "T" : "N");
    expect_close(c, expected, error_of(s.k), what);
    expect_close(kept, expected_kept, error_of(s.k), what + " kept");
  }
};

TEST_P(GemmVariant, EqualsTheReferenceForOddSizesAndAllTranspositions) {
  for (const std::int64_t m : {0, 1, 3, 17, 65})
    for (const std::int64_t n : {0, 1, 17, 63})
      for (const std::int64_t k : {0, 1, 3, 65})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true}) expect_product({m, n, k}, ta, tb, {}, dtype());
}

// Beyond every block: 256 deep, 192 tall, 1024 wide.
TEST_P(GemmVariant, EqualsTheReferenceAcrossBlocks) {
  for (const Shape s : {Shape{7, 5, 600}, Shape{200, 9, 20}, Shape{5, 1100, 30}})
    for (const bool transposed : {false, true})
      expect_product(s, transposed, !transposed, {}, dtype());
}

TEST_P(GemmVariant, ScalesAndAccumulates) {
  for (const Dtype c : {Dtype::kFp32, Dtype::kBf16})
    for (const std::int64_t k : {0, 17, 300}) {
      expect_product({17, 19, k}, true, false, {.alpha = 0.5F, .beta = 1}, c);
      expect_product({17, 19, k}, false, true, {.alpha = -2, .beta = 0.25F}, c);
    }
}

TEST_P(GemmVariant, AddsTheBiasAndActivates) {
  for (const GemmActivation activation :
       {GemmActivation::kGeluTanh, GemmActivation::kGeluErf, GemmActivation::kRelu})
    for (const Dtype c : {Dtype::kFp32, Dtype::kBf16})
      expect_product({17, 1030, 9}, false, false, {.activation = activation}, c);
}

TEST_P(GemmVariant, MultipliesDifferentDtypes) {
  TestMatrix a(9, 33), b(33, 21, Dtype::kBf16), c(9, 21), expected(9, 21);
  a.random(1), b.random(2);
  run_kernel(kernels().gemm, {.a = a, .b = b, .c = c});
  run_kernel(reference().gemm, {.a = a, .b = b, .c = expected});
  expect_close(c, expected, error_of(33), "fp32 times bf16");
}

// What makes tensor, data and sequence parallelism exact: an element of the result does not know
// how many rows and columns stand around it.
TEST_P(GemmVariant, CuttingRowsOrColumnsChangesNoBit) {
  TestMatrix a(70, 530, dtype()), b(530, 90, dtype()), whole(70, 90), cut(70, 90);
  a.random(1), b.random(2);
  run_kernel(kernels().gemm, {.a = a, .b = b, .c = whole});
  for (const std::int64_t first : {0, 31}) {
    const std::int64_t rows = first == 0 ? 31 : 39;
    for (const std::int64_t column : {0, 44}) {
      const std::int64_t columns = column == 0 ? 44 : 46;
      run_kernel(kernels().gemm,
                 {.a = rows_of(ConstMatrix(a), first, rows),
                  .b = columns_of(ConstMatrix(b), column, columns),
                  .c = columns_of(rows_of(Matrix(cut), first, rows), column, columns)});
    }
  }
  EXPECT_TRUE(same_bits(cut, whole));
}

TEST_P(GemmVariant, MultipliesBatches) {
  TestMatrix a(3 * 5, 7, dtype()), b(3 * 7, 11, dtype()), c(3 * 5, 11, dtype());
  TestMatrix expected(3 * 5, 11, dtype());
  a.random(1), b.random(2);
  BatchedGemm batch{.first = {.a = rows_of(ConstMatrix(a), 0, 5),
                              .b = rows_of(ConstMatrix(b), 0, 7),
                              .c = rows_of(Matrix(c), 0, 5)},
                    .count = 3,
                    .step_a = 5 * 7,
                    .step_b = 7 * 11,
                    .step_c = 5 * 11};
  run_kernel(kernels().batched_gemm, batch);
  for (std::int64_t i = 0; i < 3; ++i)
    run_kernel(reference().gemm, {.a = rows_of(ConstMatrix(a), 5 * i, 5),
                                  .b = rows_of(ConstMatrix(b), 7 * i, 7),
                                  .c = rows_of(Matrix(expected), 5 * i, 5)});
  expect_close(c, expected, error_of(7), "batch");
}

// Four experts with 3, 0, 9 and 1 rows.
TEST_P(GemmVariant, MultipliesTheRowsOfEachExpert) {
  const std::vector<std::int64_t> offsets{0, 3, 3, 12, 13};
  TestMatrix x(13, 6, dtype()), weights(4 * 6, 10, dtype()), bias(4, 10, dtype());
  TestMatrix y(13, 10, dtype()), expected(13, 10, dtype());
  x.random(1), weights.random(2), bias.random(3);
  GroupedGemm forward{.x = x, .weights = weights, .y = y, .bias = bias, .offsets = offsets};
  run_kernel(kernels().grouped_gemm, forward);
  TestMatrix dx(13, 6, dtype()), expected_dx(13, 6, dtype());
  run_kernel(kernels().grouped_gemm,
             {.x = y, .weights = weights, .transpose_weights = true, .y = dx, .offsets = offsets});
  TestMatrix dw(4 * 6, 10), expected_dw(4 * 6, 10);
  dw.random(5), expected_dw.random(5);
  run_kernel(kernels().grouped_gemm_weight, {.x = x, .dy = y, .dweights = dw, .offsets = offsets});
  for (std::int64_t e = 0; e < 4; ++e) {
    const std::int64_t first = offsets[static_cast<std::size_t>(e)];
    const std::int64_t rows = offsets[static_cast<std::size_t>(e) + 1] - first;
    const ConstMatrix xe = rows_of(ConstMatrix(x), first, rows);
    const ConstMatrix we = rows_of(ConstMatrix(weights), 6 * e, 6);
    const ConstMatrix ye = rows_of(ConstMatrix(y), first, rows);
    const ConstMatrix be = rows_of(ConstMatrix(bias), e, 1);
    run_kernel(reference().gemm, {.a = xe,
                                  .b = we,
                                  .c = rows_of(Matrix(expected), first, rows),
                                  .bias = {be.data, 10, be.dtype}});
    run_kernel(
        reference().gemm,
        {.a = ye, .b = we, .transpose_b = true, .c = rows_of(Matrix(expected_dx), first, rows)});
    run_kernel(reference().gemm, {.a = xe,
                                  .transpose_a = true,
                                  .b = ye,
                                  .c = rows_of(Matrix(expected_dw), 6 * e, 6),
                                  .beta = 1});
  }
  expect_close(y, expected, error_of(6), "y");
  expect_close(dx, expected_dx, 10 * error_of(10), "dx");  // y is up to 7
  expect_close(dw, expected_dw, 10 * error_of(13), "dw");
}

MESHWRIGHT_ALL_VARIANTS(GemmVariant);

// Wrong shapes are bugs of the caller and are caught, not computed.
TEST(GemmReference, RefusesShapesThatDoNotMatch) {
  TestMatrix a(2, 3), b(4, 2), c(2, 2);
  EXPECT_ANY_THROW(run_kernel(reference_kernels().gemm, {.a = a, .b = b, .c = c}));
}

}  // namespace
}  // namespace meshwright
