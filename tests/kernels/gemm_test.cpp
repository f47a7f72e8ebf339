#include "kernels/gemm.hpp"

#include <filesystem>
#include <iterator>
#include <thread>

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

// [1 2; 3 4] [5 6; 7 8] = [19 22; 43 50]; plus half of 10, plus the bias (1, -1).
TEST(GemmReference, MultipliesByHand) {
  TestMatrix a(2, 2), b(2, 2), c(2, 2), bias(1, 2);
  for (int i = 0; i < 4; ++i) a.set(i, i + 1), b.set(i, i + 5), c.set(i, 10);
  bias.set(0, 1), bias.set(1, -1);
  run_kernel(reference_kernels().gemm, {.a = a, .b = b, .c = c, .beta = 0.5F, .bias = bias});
  EXPECT_EQ(c(0, 0), 25);
  EXPECT_EQ(c(0, 1), 26);
  EXPECT_EQ(c(1, 0), 49);
  EXPECT_EQ(c(1, 1), 54);
}

// 1 x 2 - 1 = 1 and -1 x 2 - 1 = -3; GELU there: 0.841192 and -0.00363739; its slope at
// 2: 1.0860994.
TEST(GemmReference, AppliesGeluByHand) {
  TestMatrix a(2, 1), b(1, 1), c(2, 1), bias(1, 1), gelu(2, 1), at(2, 1);
  a.set(0, 1), a.set(1, -1), b.set(0, 2), bias.set(0, -1), at.fill(2);
  run_kernel(reference_kernels().gemm, {.a = a, .b = b, .c = c, .bias = bias, .gelu = gelu});
  EXPECT_EQ(c[1], -3);
  EXPECT_NEAR(gelu[0], 0.841192, 1e-6);
  EXPECT_NEAR(gelu[1], -0.00363739, 1e-6);
  run_kernel(reference_kernels().gemm, {.a = a, .b = b, .c = c, .slope_at = at});
  EXPECT_NEAR(c[1], -2 * 1.0860994, 1e-6);
}

struct Shape {
  std::int64_t m, n, k;
};

class GemmVariant : public VariantTest {
 protected:
  /// Values are at most 1, so a sum of k products is at most k and each of its k roundings at most
  /// 2^-24 k: k^2 2^-24 in the worst case. Random signs make k 2^-24 generous.
  static double error_of(std::int64_t k) { return static_cast<double>(k + 8) * 0x1p-24; }

  void expect_product(Shape s, bool transpose_a, bool transpose_b, Gemm extra, Dtype c_dtype,
                      bool adds_bias = false, std::int64_t gap = 1) {
    TestMatrix a = transpose_a ? TestMatrix(s.k, s.m, dtype(), 3 * gap)
                               : TestMatrix(s.m, s.k, dtype(), 3 * gap);
    TestMatrix b =
        transpose_b ? TestMatrix(s.n, s.k, dtype(), gap) : TestMatrix(s.k, s.n, dtype(), gap);
    TestMatrix bias(1, s.n, dtype());
    a.random(1), b.random(2), bias.random(4);
    TestMatrix c(s.m, s.n, c_dtype, 5 * gap);
    c.random(3);
    if (extra.beta == 0) c.fill(std::numeric_limits<double>::quiet_NaN());
    TestMatrix expected = c;
    extra.a = a, extra.b = b;
    extra.transpose_a = transpose_a, extra.transpose_b = transpose_b;
    if (adds_bias) extra.bias = bias;
    extra.c = c;
    run_kernel(kernels().gemm, extra);
    extra.c = expected;
    run_kernel(reference().gemm, extra);
    const std::string what = "m=" + std::to_string(s.m) + " n=" + std::to_string(s.n) +
                             " k=" + std::to_string(s.k) + (transpose_a ? " T" : " N") +
                             (transpose_b ? "T" : "N");
    expect_close(c, expected, error_of(s.k), what);
  }
};

TEST_P(GemmVariant, EqualsTheReferenceForOddSizesAndAllTranspositions) {
  for (const std::int64_t m : {0, 1, 3, 17, 65})
    for (const std::int64_t n : {0, 1, 17, 63})
      for (const std::int64_t k : {0, 1, 3, 65})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true}) expect_product({m, n, k}, ta, tb, {}, dtype());
}

// Larger than a block, whose edge is 512.
TEST_P(GemmVariant, EqualsTheReferenceAcrossBlocks) {
  for (const Shape s : {Shape{7, 5, 600}, Shape{520, 9, 20}, Shape{5, 1100, 30}})
    for (const bool transposed : {false, true})
      expect_product(s, transposed, !transposed, {}, dtype());
}

TEST_P(GemmVariant, Accumulates) {
  for (const Dtype c : {Dtype::kFp32, Dtype::kBf16})
    for (const std::int64_t k : {0, 17, 300}) {
      expect_product({17, 19, k}, true, false, {.beta = 1}, c);
      expect_product({17, 19, k}, false, true, {.beta = 0.25F}, c);
    }
}

TEST_P(GemmVariant, AddsTheBias) {
  for (const Dtype c : {Dtype::kFp32, Dtype::kBf16})
    for (const float beta : {0.0F, 1.0F})
      for (const auto& [s, gap] : {std::pair{Shape{17, 1030, 9}, 1}, {Shape{48, 520, 64}, 8}})
        expect_product(s, false, false, {.beta = beta}, c, true, gap);
}

/// Both result dtypes, row lengths that cuBLASLt supports (multiples of 8) and others.
struct GeluCase {
  Shape s;
  std::int64_t padding;
};
constexpr GeluCase kGeluCases[] = {{{17, 24, 9}, 0},  {{17, 24, 9}, 3}, {{33, 19, 40}, 5},
                                   {{5, 16, 0}, 0},   {{0, 8, 3}, 0},   {{70, 520, 30}, 8},
                                   {{48, 520, 64}, 8}};

// GELU may be applied to the sums before or after rounding: its slope is at most 1.13, so the
// results differ by at most 1.13 units of the largest sum.
TEST_P(GemmVariant, AppliesGeluToTheResult) {
  for (const Dtype c_dtype : {Dtype::kFp32, Dtype::kBf16})
    for (const auto& [s, padding] : kGeluCases)
      for (const bool adds_bias : {false, true}) {
        TestMatrix a(s.m, s.k, dtype()), b(s.k, s.n, dtype()), bias(1, s.n, dtype());
        a.random(1), b.random(2), bias.random(3);
        TestMatrix c(s.m, s.n, c_dtype, padding), gelu(s.m, s.n, c_dtype, 2 * padding);
        TestMatrix expected_c = c, expected = gelu;
        Gemm product{.a = a, .b = b, .c = c, .gelu = gelu};
        if (adds_bias) product.bias = bias;
        run_kernel(kernels().gemm, product);
        product.c = expected_c, product.gelu = expected;
        run_kernel(reference().gemm, product);
        double largest = 0;
        for (std::int64_t i = 0; i < c.size(); ++i)
          largest = std::max(largest, std::abs(expected_c[i]));
        expect_close(c, expected_c, error_of(s.k), "c");
        expect_close(gelu, expected, error_of(s.k) + 1.13 * unit_of(c_dtype) * largest, "gelu");
      }
}

TEST_P(GemmVariant, MultipliesByTheSlopeOfGelu) {
  for (const Dtype c_dtype : {Dtype::kFp32, Dtype::kBf16})
    for (const auto& [s, padding] : kGeluCases) {
      TestMatrix dy(s.m, s.k, dtype()), w(s.n, s.k, dtype()), x(s.m, s.n, c_dtype, padding);
      dy.random(1), w.random(2), x.random(3, 3);
      TestMatrix dx(s.m, s.n, c_dtype, 2 * padding), expected = dx;
      dx.fill(std::numeric_limits<double>::quiet_NaN());
      Gemm product{.a = dy, .b = w, .transpose_b = true, .c = dx, .slope_at = x};
      run_kernel(kernels().gemm, product);
      product.c = expected;
      run_kernel(reference().gemm, product);
      expect_close(dx, expected, 2 * error_of(s.k), "dx");
    }
}

// Runs are reproducible: the same arguments give the same bits, wherever they are in memory.
TEST_P(GemmVariant, IsDeterministic) {
  TestMatrix a(70, 530, dtype()), b(530, 90, dtype()), c(70, 90);
  a.random(1), b.random(2);
  run_kernel(kernels().gemm, {.a = a, .b = b, .c = c});
  for (int i = 0; i < 3; ++i) {
    const TestMatrix a_again = a, b_again = b;
    TestMatrix again(70, 90);
    run_kernel(kernels().gemm, {.a = a_again, .b = b_again, .c = again});
    EXPECT_TRUE(same_bits(again, c));
  }
}

class HostGemmVariant : public GemmVariant {};

// Ranks are threads: a library that started more would slow them down unnoticed.
TEST_P(HostGemmVariant, StartsNoThreads) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  ASSERT_TRUE(std::filesystem::exists("/proc/self/task"));
  const auto before = threads();
  std::ptrdiff_t during = 0;
  std::thread([&] {
    expect_product({300, 300, 300}, false, false, {}, dtype());
    during = threads();
  }).join();
  EXPECT_EQ(during, before + 1);
}

TEST_P(GemmVariant, MultipliesDifferentDtypes) {
  TestMatrix a(9, 33), b(33, 21, Dtype::kBf16), c(9, 21), expected(9, 21);
  a.random(1), b.random(2);
  run_kernel(kernels().gemm, {.a = a, .b = b, .c = c});
  run_kernel(reference().gemm, {.a = a, .b = b, .c = expected});
  expect_close(c, expected, error_of(33), "fp32 times bf16");
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

// Experts with less than a tile of rows, one tile and several, starting at arbitrary rows; odd
// sizes and sizes that allow accesses of 16 bytes.
TEST_P(GemmVariant, MultipliesExpertsOfManyRows) {
  const std::vector<std::int64_t> offsets{0, 71, 71, 340, 341};
  for (const auto& [k, n] : {std::pair<std::int64_t, std::int64_t>{136, 152}, {67, 131}}) {
    TestMatrix x(341, k, dtype()), weights(4 * k, n, dtype()), bias(4, n, dtype());
    TestMatrix y(341, n, dtype(), n % 8), expected(341, n, dtype());
    x.random(1), weights.random(2), bias.random(3);
    for (const bool adds_bias : {false, true}) {
      GroupedGemm forward{.x = x, .weights = weights, .y = y, .offsets = offsets};
      if (adds_bias) forward.bias = bias;
      run_kernel(kernels().grouped_gemm, forward);
      forward.y = expected;
      run_kernel(reference().grouped_gemm, forward);
      expect_close(y, expected, error_of(k), "y");
    }

    TestMatrix dy(341, n, dtype()), dx(341, k, dtype()), expected_dx(341, k, dtype());
    dy.random(4);
    GroupedGemm back{
        .x = dy, .weights = weights, .transpose_weights = true, .y = dx, .offsets = offsets};
    run_kernel(kernels().grouped_gemm, back);
    back.y = expected_dx;
    run_kernel(reference().grouped_gemm, back);
    expect_close(dx, expected_dx, error_of(n), "dx");

    TestMatrix dw(4 * k, n), expected_dw(4 * k, n);
    dw.random(5), expected_dw.random(5);
    GroupedGemmWeight weight{.x = x, .dy = dy, .dweights = dw, .offsets = offsets};
    run_kernel(kernels().grouped_gemm_weight, weight);
    weight.dweights = expected_dw;
    run_kernel(reference().grouped_gemm_weight, weight);
    expect_close(dw, expected_dw, error_of(269), "dw");  // rows of the largest expert
  }
}

MESHWRIGHT_ALL_VARIANTS(GemmVariant);
MESHWRIGHT_HOST_VARIANTS(HostGemmVariant);

// Wrong shapes are bugs of the caller and are caught, not computed.
TEST(GemmReference, RefusesShapesThatDoNotMatch) {
  TestMatrix a(2, 3), b(4, 2), c(2, 2);
  EXPECT_ANY_THROW(run_kernel(reference_kernels().gemm, {.a = a, .b = b, .c = c}));
}

}  // namespace
}  // namespace meshwright
