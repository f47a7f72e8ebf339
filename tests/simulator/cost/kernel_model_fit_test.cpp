#include "simulator/cost/kernel_model_fit.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace meshwright {
namespace {

/// 1 us per MFLOP.
class OneRate final : public CostModel {
 public:
  Seconds time_of(const Kernel& kernel) const override {
    return Seconds(kernel.flops.value / 1e12);
  }
  Seconds time_of(const Collective&) const override { return {}; }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  std::string provenance() const override { return "one rate"; }
};
const OneRate model;

/// A square product measured with `factor` times the model's time plus `fixed`.
KernelPoint square(std::int64_t size, double factor, Seconds fixed) {
  KernelPoint point{.m = size, .n = size, .k = size, .time = {}};
  point.flops = Flops(2.0 * std::pow(static_cast<double>(size), 3));
  point.time = Seconds(factor * point.flops.value / 1e12) + fixed;
  return point;
}
KernelCurve squares(const std::vector<std::int64_t>& sizes, double factor, Seconds fixed) {
  KernelCurve curve{.family = {.kind = KernelKind::kGemm}, .points = {}};
  for (const std::int64_t size : sizes) curve.points.push_back(square(size, factor, fixed));
  return curve;
}
Kernel product(std::int64_t size) {
  return kernel_of({.kind = KernelKind::kGemm}, square(size, 1, {}));
}
double relative(const KernelModelFit& fit, std::int64_t size, const KernelPoint& expected) {
  return ratio(fit.time_of(product(size), model), expected.time);
}

// 128^3 products take 4.2 us by the model: the fixed cost decides there, and vanishes at 16384.
TEST(KernelModelFit, AddsTheFixedCostOfACallToTheModel) {
  const Seconds fixed(5e-6);
  const KernelModelFit fit(squares({64, 128, 256, 512}, 1, fixed), model);
  for (const std::int64_t size : {64, 100, 1000, 16384})
    EXPECT_NEAR(relative(fit, size, square(size, 1, fixed)), 1, 1e-9) << size;
}

// Twenty kernels in half of the model's time outweigh the five that it counts like: the least
// squares are at a = (20 * 2 + 5) / (20 * 4 + 5) = 9 / 17, far from all points.
TEST(KernelModelFit, TrustsManyMeasurementsMoreThanTheModel) {
  const KernelModelFit fit(squares(std::vector<std::int64_t>(20, 4096), 0.5, {}), model);
  EXPECT_NEAR(relative(fit, 4096, square(4096, 0.5, {})), 1, 0.001);
  EXPECT_NEAR(relative(fit, 1 << 20, square(1 << 20, 9.0 / 17, {})), 1, 0.02);
}

// The neighbors are three doublings of m, n and k away; eight doublings away there is none.
TEST(KernelModelFit, CorrectsNearbyShapesOnly) {
  KernelCurve curve = squares({64, 512, 4096}, 1, {});
  curve.points[1] = square(512, 1.5, {});
  const KernelModelFit fit(curve, model);
  const double far = relative(fit, 1 << 20, square(1 << 20, 1, {}));
  EXPECT_GT(relative(fit, 512, square(512, 1, {})), 1.3);
  EXPECT_LT(relative(fit, 512, square(512, 1, {})), 1.5);
  EXPECT_NEAR(far, 1, 0.15);
}

// If all small kernels take 20 us, that is the fixed cost; large kernels take the model's time
// more.
TEST(KernelModelFit, ExtrapolatesByTheModel) {
  const KernelModelFit fit(squares({16, 24, 32, 48}, 0, Seconds(20e-6)), model);
  EXPECT_NEAR(relative(fit, 16, square(16, 0, Seconds(20e-6))), 1, 0.01);
  EXPECT_NEAR(relative(fit, 8192, square(8192, 1, Seconds(20e-6))), 1, 0.01);
}

// Times below the model's: no negative fixed cost.
TEST(KernelModelFit, NeverTurnsNegative) {
  const KernelModelFit fit(squares({1024, 2048, 4096}, 0.5, {}), model);
  for (const std::int64_t size : {1, 64, 1024, 65536})
    EXPECT_GT(fit.time_of(product(size), model), Seconds{}) << size;
}

}  // namespace
}  // namespace meshwright
