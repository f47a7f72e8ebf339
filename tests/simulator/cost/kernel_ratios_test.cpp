#include "simulator/cost/kernel_ratios.hpp"

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

KernelPoint square(std::int64_t size, double factor) {
  KernelPoint point{.m = size, .n = size, .k = size, .time = {}};
  point.flops = Flops(2.0 * std::pow(static_cast<double>(size), 3));
  point.time = Seconds(factor * point.flops.value / 1e12);
  return point;
}
Kernel product(std::int64_t size) {
  return kernel_of({.kind = KernelKind::kGemm}, square(size, 1));
}
double factor_at(const KernelRatios& ratios, std::int64_t size) {
  const OneRate base;
  return ratios.time_of(product(size), base).value / base.time_of(product(size)).value;
}

TEST(KernelRatios, AreExactAtMeasuredShapes) {
  const KernelRatios ratios(
      {.family = {.kind = KernelKind::kGemm}, .points = {square(256, 3), square(257, 1)}});
  EXPECT_DOUBLE_EQ(factor_at(ratios, 256), 3);
  EXPECT_DOUBLE_EQ(factor_at(ratios, 257), 1);
}

TEST(KernelRatios, ScaleAllOtherShapesByOneMeasurement) {
  const KernelRatios ratios({.family = {.kind = KernelKind::kGemm}, .points = {square(1024, 2)}});
  EXPECT_NEAR(factor_at(ratios, 1000), 2, 1e-12);
  EXPECT_NEAR(factor_at(ratios, 16), 2, 1e-12);
}

// Points at 256 (factor 4) and 4096 (factor 1): 1024 is 2 doublings of m, n and k from each, so
// both weigh the same and the factor is their geometric mean, as is that of far-away shapes.
TEST(KernelRatios, FallBetweenTheirNeighbors) {
  const KernelRatios ratios(
      {.family = {.kind = KernelKind::kGemm}, .points = {square(256, 4), square(4096, 1)}});
  EXPECT_NEAR(factor_at(ratios, 1024), 2, 1e-12);
  EXPECT_GT(factor_at(ratios, 300), 3.5);
  EXPECT_LT(factor_at(ratios, 4000), 1.1);
}

// Updates are told apart by their parameters, whatever the memory traffic.
TEST(KernelRatios, CompareUpdatesByParameters) {
  KernelPoint point{.m = 1000, .memory_traffic = Bytes(46'000), .time = Seconds(5)};
  const KernelRatios ratios({.family = {.kind = KernelKind::kOptimizer}, .points = {point}});
  Kernel update;
  update.kind = KernelKind::kOptimizer;
  update.m = 1000;
  update.memory_traffic = Bytes(50'000);
  EXPECT_DOUBLE_EQ(ratios.time_of(update, OneRate()).value, 5);
}

}  // namespace
}  // namespace meshwright
