#include "simulator/cost/kernel_curve_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace meshwright {
namespace {

/// A product that takes 2 us, 10 GFLOP/s and 1 ns for each number of its right operand.
Seconds law(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto size = [](std::int64_t x) { return static_cast<double>(x); };
  return Seconds(2e-6 + 2 * size(m) * size(n) * size(k) / 10e9 + 1e-9 * size(k) * size(n));
}
KernelPoint point(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m, .n = n, .k = k, .time = law(m, n, k)};
}
Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.m = m, kernel.n = n, kernel.k = k;
  return kernel;
}

KernelCurve products(const std::vector<std::int64_t>& sizes) {
  KernelCurve curve{.family = {.kind = KernelKind::kGemm}, .points = {}};
  for (const std::int64_t m : sizes)
    for (const std::int64_t n : sizes)
      for (const std::int64_t k : sizes) curve.points.push_back(point(m, n, k));
  return curve;
}

TEST(KernelCurveFit, FindsALawThatItsFeaturesCanSay) {
  const KernelCurveFit fit(products({16, 64, 256}));
  for (const std::int64_t m : {8, 24, 100, 1024})
    for (const std::int64_t n : {8, 24, 100, 1024})
      EXPECT_NEAR(fit.time_of(product(m, n, 48)).value / law(m, n, 48).value, 1, 1e-6) << m << n;
}

// All points but one follow the formula, and that one takes twice as long: near it the time lies
// between the two, eight doublings away it is the formula's.
TEST(KernelCurveFit, BendsWhereAPointLiesAndNowhereElse) {
  KernelCurve curve = products({16, 64, 256, 1024});
  const std::size_t odd = 21;
  KernelPoint& p = curve.points[odd];
  ASSERT_EQ(p.m, 64);
  ASSERT_EQ(p.n, 64);
  ASSERT_EQ(p.k, 64);
  p.time = 2.0 * p.time;
  const KernelCurveFit fit(curve);
  const double near = fit.time_of(product(64, 64, 64)).value / law(64, 64, 64).value;
  EXPECT_GT(near, 1.5);
  EXPECT_LE(near, 2.05);
  const double far = fit.time_of(product(1024, 1024, 1024)).value / law(1024, 1024, 1024).value;
  EXPECT_NEAR(far, 1, 0.05);
}

// Times that decrease with size cannot be fitted by nonnegative coefficients: a constant fits best,
// and no time is ever negative.
TEST(KernelCurveFit, NeverTurnsNegative) {
  KernelCurve curve{.family = {.kind = KernelKind::kMemoryBound}, .points = {}};
  for (const std::int64_t bytes : {1000, 2000, 4000})
    curve.points.push_back(
        {.memory_traffic = Bytes(bytes), .time = Seconds(1 / static_cast<double>(bytes))});
  const KernelCurveFit fit(curve);
  for (std::int64_t bytes = 1; bytes < 1 << 30; bytes *= 3) {
    Kernel kernel;
    kernel.memory_traffic = Bytes(bytes);
    EXPECT_GT(fit.time_of(kernel).value, 0) << bytes;
  }
}

TEST(KernelCurveFit, TakesOnePointForALaw) {
  KernelCurve curve{.family = {.kind = KernelKind::kGemm}, .points = {point(64, 64, 64)}};
  const KernelCurveFit fit(curve);
  EXPECT_NEAR(fit.time_of(product(64, 64, 64)).value / law(64, 64, 64).value, 1, 1e-9);
  EXPECT_GT(fit.time_of(product(640, 64, 64)).value, 0);
}

// Two points that differ in bytes alone, 3:4, as where two query heads share a key head, or none
// do: base minimizes (x / 1 - 1)^2 + (x / 2 - 1)^2, so it is 1.2. At the second point its own
// correction ln(2 / 1.2) = 0.51083 has the weight 1 / 0.5^3 = 8, that of the first ln(1 / 1.2) =
// -0.18232 has 1 / (0.25 + (4 log2(4 / 3))^2)^1.5 = 0.1919, none has 1 / 27: 1.2 exp((8 * 0.51083 -
// 0.1919 * 0.18232) / 8.2289) = 1.9634.
TEST(KernelCurveFit, TellsHeadsThatShareKeysFromThoseThatDoNot) {
  KernelPoint shared{.batch = 4,
                     .m = 64,
                     .n = 64,
                     .k = 32,
                     .flops = Flops(1e6),
                     .memory_traffic = Bytes(98'304),
                     .time = Seconds(1)};
  KernelPoint own = shared;
  own.memory_traffic = Bytes(131'072);
  own.time = Seconds(2);
  const KernelCurveFit fit(
      {.family = {.kind = KernelKind::kAttention, .routine = Routine::kAttention},
       .points = {shared, own}});
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.batch = 4, kernel.m = kernel.n = 64, kernel.k = 32;
  kernel.flops = Flops(1e6);
  kernel.memory_traffic = Bytes(131'072);
  EXPECT_NEAR(fit.time_of(kernel).value, 1.9634, 1e-3);
}

}  // namespace
}  // namespace meshwright
