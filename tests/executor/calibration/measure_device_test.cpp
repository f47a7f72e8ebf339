#include "executor/calibration/measure_device.hpp"

#include <gtest/gtest.h>

#include "kernels/device/backend_plugin.hpp"
#include "tests/kernels/device/late_device.hpp"

namespace meshwright {
namespace {

constexpr DeviceSizes kSmall{
    .copy = Bytes(1 << 20), .largest_message = Bytes(1 << 18), .launches = 10};

void expect_figures(const MeasuredGpu& gpu, const std::vector<CurvePoint>& messages) {
  EXPECT_GT(gpu.launch_overhead, Seconds(0));
  for (const BytesPerSecond rate : {gpu.to_device, gpu.from_device, gpu.memory})
    EXPECT_GT(rate, BytesPerSecond(0));
  ASSERT_GE(messages.size(), 2u);
  EXPECT_EQ(messages.front().bytes, Bytes(1 << 10));
  const MessageFigures figures = figures_of(messages);
  EXPECT_GT(figures.latency, Seconds(0));
  EXPECT_GT(figures.bandwidth, BytesPerSecond(0));
}

// Device memory is hidden from the host, and all of it is freed.
TEST(MeasuredDevice, MeasuresEveryFigure) {
  const Bytes free = late_device().free_memory();
  const MeasuredGpu gpu = measure_gpu(late_kernels(), late_device(), kSmall);
  EXPECT_EQ(gpu.count, 1);
  expect_figures(gpu, measure_device_messages(late_device(), kSmall));
  EXPECT_EQ(late_device().free_memory(), free);
}

// 1 KiB in 2 us, 64 MiB in 1 ms.
TEST(MeasuredDevice, UsesTheEndsOfTheCurve) {
  const MessageFigures figures =
      figures_of({{Bytes(1 << 10), Seconds(2e-6)}, {Bytes(1 << 26), Seconds(1e-3)}});
  EXPECT_EQ(figures.latency, Seconds(2e-6));
  EXPECT_EQ(figures.bandwidth, BytesPerSecond(67'108'864e3));
}

TEST(CudaMeasuredDevice, MeasuresEveryFigure) {
  if (!backend_plugin(Backend::kCuda).missing.empty())
    GTEST_SKIP() << backend_plugin(Backend::kCuda).missing;
  const PluginExports& cuda = *backend_plugin(Backend::kCuda).exports;
  expect_figures(measure_gpu(cuda.kernels, cuda.device), measure_device_messages(cuda.device));
}

}  // namespace
}  // namespace meshwright
