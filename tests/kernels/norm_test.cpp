#include "kernels/norm.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

// (1, 3): mean 2, variance 1, so (-1, 1) before weight 2 and bias 0.5.
TEST(NormReference, LayerNormByHand) {
  TestMatrix x(1, 2), weight(1, 2), bias(1, 2), y(1, 2), mean(1, 1), r(1, 1);
  x.set(0, 1), x.set(1, 3);
  weight.fill(2), bias.fill(0.5);
  run_kernel(reference_kernels().norm_forward, {.x = x,
                                                .weight = weight,
                                                .bias = bias,
                                                .epsilon = 0,
                                                .y = y,
                                                .mean = mean,
                                                .inverse_deviation = r});
  EXPECT_EQ(y[0], -1.5);
  EXPECT_EQ(y[1], 2.5);
  EXPECT_EQ(mean[0], 2);
  EXPECT_EQ(r[0], 1);
}

// (2, 14): mean square 100, so (0.2, 1.4).
TEST(NormReference, RmsNormByHand) {
  TestMatrix x(1, 2), weight(1, 2), y(1, 2);
  x.set(0, 2), x.set(1, 14);
  weight.fill(1);
  run_kernel(reference_kernels().norm_forward,
             {.kind = NormKind::kRmsNorm, .x = x, .weight = weight, .epsilon = 0, .y = y});
  EXPECT_FLOAT_EQ(static_cast<float>(y[0]), 0.2F);
  EXPECT_FLOAT_EQ(static_cast<float>(y[1]), 1.4F);
}

// With an offset of 1 a weight of 0.5 is a factor of 1.5; without weights the factor is 1.
TEST(NormReference, OffsetsWeightsAndLeavesThemOut) {
  TestMatrix x(1, 2), weight(1, 2), y(1, 2);
  x.set(0, 2), x.set(1, 14);
  weight.fill(0.5);
  NormForward norm{
      .kind = NormKind::kRmsNorm, .x = x, .weight = weight, .offset = 1, .epsilon = 0, .y = y};
  run_kernel(reference_kernels().norm_forward, norm);
  EXPECT_FLOAT_EQ(static_cast<float>(y[0]), 0.3F);
  norm.weight = {};
  run_kernel(reference_kernels().norm_forward, norm);
  EXPECT_FLOAT_EQ(static_cast<float>(y[1]), 1.4F);
}

struct NormCase {
  NormKind kind;
  std::int64_t rows, columns, groups;
  float offset = 0;
  bool weighted = true;
};
std::vector<NormCase> norm_cases() {
  std::vector<NormCase> cases;
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm})
    for (const std::int64_t columns : {1, 3, 17, 63, 65, 1100}) {
      cases.push_back({kind, 0, columns, 1});
      cases.push_back({kind, 1, columns, 1});
      cases.push_back({kind, 70, columns, 1});
      cases.push_back({kind, 5, 3 * columns, 3});
      cases.push_back({kind, 5, 3 * columns, 3, 1});
      cases.push_back({kind, 7, columns, 1, 0, false});
    }
  return cases;
}

/// All three kernels on one table.
struct NormResult {
  TestMatrix y, mean, r, dx, dweight, dbias;
};
NormResult run_norm(const KernelTable& kernels, const NormCase& c, const TestMatrix& x,
                    const TestMatrix& dy, const TestMatrix& weight, const TestMatrix& bias,
                    bool accumulate) {
  const std::int64_t width = c.columns / c.groups;
  NormResult n{TestMatrix(c.rows, c.columns, x.dtype(), 2),
               TestMatrix(c.rows, c.groups),
               TestMatrix(c.rows, c.groups),
               TestMatrix(c.rows, c.columns, x.dtype(), 1),
               TestMatrix(1, width),
               TestMatrix(1, width)};
  const bool centered = c.kind == NormKind::kLayerNorm;
  n.dx.random(9), n.dweight.random(10), n.dbias.random(11);
  NormForward forward{.kind = c.kind,
                      .x = x,
                      .weight = c.weighted ? ConstVector(weight) : ConstVector(),
                      .offset = c.offset,
                      .groups = c.groups,
                      .y = n.y,
                      .mean = n.mean,
                      .inverse_deviation = n.r};
  if (centered) forward.bias = bias;
  run_kernel(kernels.norm_forward, forward);
  run_kernel(kernels.norm_backward_input,
             {.kind = c.kind,
              .x = x,
              .dy = dy,
              .weight = c.weighted ? ConstVector(weight) : ConstVector(),
              .offset = c.offset,
              .mean = n.mean,
              .inverse_deviation = n.r,
              .groups = c.groups,
              .dx = n.dx,
              .accumulate = accumulate});
  NormBackwardWeight backward{.kind = c.kind,
                              .x = x,
                              .dy = dy,
                              .mean = n.mean,
                              .inverse_deviation = n.r,
                              .groups = c.groups,
                              .dweight = n.dweight};
  if (centered) backward.dbias = n.dbias;
  run_kernel(kernels.norm_backward_weight, backward);
  return n;
}

TEST(NormReference, GradientsEqualFiniteDifferences) {
  for (const NormCase c :
       {NormCase{NormKind::kLayerNorm, 2, 5, 1}, NormCase{NormKind::kRmsNorm, 2, 5, 1},
        NormCase{NormKind::kLayerNorm, 2, 8, 2}, NormCase{NormKind::kRmsNorm, 1, 9, 3},
        NormCase{NormKind::kRmsNorm, 2, 5, 1, 1}}) {
    const std::int64_t width = c.columns / c.groups;
    TestMatrix x(c.rows, c.columns), dy(c.rows, c.columns), weight(1, width), bias(1, width);
    x.random(1, 4), dy.random(2), weight.random(3), bias.random(4);
    NormResult n = run_norm(reference_kernels(), c, x, dy, weight, bias, false);
    TestMatrix before_weight(1, width), before_bias(1, width);
    before_weight.random(10), before_bias.random(11);
    for (std::int64_t i = 0; i < width; ++i) {  // both are accumulated
      n.dweight.set(i, n.dweight[i] - before_weight[i]);
      n.dbias.set(i, n.dbias[i] - before_bias[i]);
    }
    const auto loss = [&] {
      return dot(run_norm(reference_kernels(), c, x, dy, weight, bias, false).y, dy);
    };
    expect_gradient(x, n.dx, loss, "dx", 5e-4);  // the fifth derivative of 1/deviation is large
    expect_gradient(weight, n.dweight, loss, "dweight");
    if (c.kind == NormKind::kLayerNorm) expect_gradient(bias, n.dbias, loss, "dbias");
  }
}

class NormVariant : public VariantTest {};

// Sums of n terms of size one lose at most n 2^-24, in 16 lanes n/16; the mean divides by n again.
// What is left is a few roundings of y, which is at most ~4 here, and of dx, multiplied by r: x is
// random in [-4, 4], so r is about 0.4 unless all elements are (nearly) equal, as in rows of one.
TEST_P(NormVariant, EqualsTheReference) {
  for (const NormCase& c : norm_cases())
    for (const bool accumulate : {false, true}) {
      const std::int64_t width = c.columns / c.groups;
      TestMatrix x(c.rows, c.columns, dtype(), 3), dy(c.rows, c.columns, dtype());
      TestMatrix weight(1, width, dtype()), bias(1, width, dtype());
      x.random(1, 4), dy.random(2), weight.random(3), bias.random(4);
      const NormResult actual = run_norm(kernels(), c, x, dy, weight, bias, accumulate);
      const NormResult expected = run_norm(reference(), c, x, dy, weight, bias, accumulate);
      const std::string what = "rows " + std::to_string(c.rows) + " columns " +
                               std::to_string(c.columns) + " groups " + std::to_string(c.groups);
      const double error = 64 * 0x1p-24;
      // Rows of one element have deviation 0: r = 1/sqrt(1e-5) = 316 magnifies every rounding.
      const double r = width == 1 ? 320 : 4;
      expect_close(actual.y, expected.y, error, what + " y");
      expect_close(actual.mean, expected.mean, error, what + " mean");
      expect_close(actual.r, expected.r, error * r, what + " r");
      expect_close(actual.dx, expected.dx, error * r, what + " dx");
      const double summed = static_cast<double>(c.rows * c.groups) * r * 0x1p-22;
      expect_close(actual.dweight, expected.dweight, error + summed, what + " dweight");
      expect_close(actual.dbias, expected.dbias, error + summed, what + " dbias");
    }
}

TEST_P(NormVariant, ComputesStatisticsOnly) {
  for (const NormKind kind : {NormKind::kLayerNorm, NormKind::kRmsNorm}) {
    TestMatrix x(5, 70, dtype()), weight(1, 70, dtype()), y(5, 70, dtype());
    TestMatrix mean(5, 1), r(5, 1), mean_alone(5, 1), r_alone(5, 1);
    x.random(1), weight.random(2);
    NormForward forward{
        .kind = kind, .x = x, .weight = weight, .y = y, .mean = mean, .inverse_deviation = r};
    run_kernel(kernels().norm_forward, forward);
    forward.y = {}, forward.mean = mean_alone, forward.inverse_deviation = r_alone;
    run_kernel(kernels().norm_forward, forward);
    EXPECT_TRUE(same_bits(mean_alone, mean));
    EXPECT_TRUE(same_bits(r_alone, r));
  }
}

MESHWRIGHT_ALL_VARIANTS(NormVariant);

}  // namespace
}  // namespace meshwright
