#include "executor/calibration/kernel_curves.hpp"

#include <gtest/gtest.h>

#include "tests/executor/tasks/timed_gelu.hpp"

namespace meshwright {
namespace {

// The median of 2, 4, 4, 6, 100 is 4: the last call is clipped to 12, and the mean is 28 / 5. The
// quartiles are 4 and 6.
TEST(KernelCurves, ClipOutliers) {
  const auto curves = kernel_curves({{{gelu(64)}, seconds({100, 4, 2, 6, 4})}});
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].points.size(), 1u);
  const KernelPoint& point = curves[0].points[0];
  EXPECT_DOUBLE_EQ(point.time.value, 5.6);
  EXPECT_DOUBLE_EQ(point.spread, 0.5);
  EXPECT_EQ(point.samples, 5);
}

TEST(KernelCurves, PoolCallsOfEqualShapeOnly) {
  const auto curves = kernel_curves(
      {{{gelu(64)}, seconds({1})}, {{gelu(128)}, seconds({5})}, {{gelu(64)}, seconds({2})}});
  ASSERT_EQ(curves.size(), 1u);
  ASSERT_EQ(curves[0].points.size(), 2u);
  EXPECT_EQ(curves[0].points[0].memory_traffic, Bytes(64));
  EXPECT_DOUBLE_EQ(curves[0].points[0].time.value, 1.5);
  EXPECT_DOUBLE_EQ(curves[0].points[1].time.value, 5);
}

// Timed together, 8 s: kernels with 30 and 10 bytes at one rate share them 3:1.
TEST(KernelCurves, DivideTheTimeOfKernelsTimedTogether) {
  Kernel relu = gelu(10);
  relu.routine = Routine::kRelu;
  const auto curves = kernel_curves({{{gelu(30), relu}, seconds({8})}});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].family.routine, Routine::kGelu);
  EXPECT_DOUBLE_EQ(curves[0].points[0].time.value, 6);
  EXPECT_DOUBLE_EQ(curves[1].points[0].time.value, 2);
}

}  // namespace
}  // namespace meshwright
