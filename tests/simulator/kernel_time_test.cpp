#include "simulator/kernel_time.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulator/csv_rows.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::testing;

Kernel gemm(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.flops = Flops(2.0 * static_cast<double>(batch * m * n * k));
  kernel.memory_traffic = Bytes(2 * batch * (m * k + k * n + m * n));
  return kernel;
}

// Derived in kernel_time.hpp: 4 waves of 296.55 us.
TEST(GemmTime, MatchesTheWorkedNumber) {
  const double tile = 805306368.0 / (0.94 * 312e12 / 108);
  EXPECT_NEAR(tile, 296.55e-6, 1e-8);
  EXPECT_NEAR(kernel_time(gemm(1, 1024, 12288, 12288), reference_a100()).value, 4 * tile, 1e-9);
}

// 64 x 12288 x 12288 reads 302 MB of weights: 0.91 * 2.039 TB/s decide, not the tiles.
TEST(GemmTime, IsNeverBelowTheMemoryTraffic) {
  const Kernel kernel = gemm(1, 64, 12288, 12288);
  EXPECT_NEAR(kernel_time(kernel, reference_a100()).value,
              static_cast<double>(kernel.memory_traffic.value) / (0.91 * 2.039e12), 1e-9);
}

// 109 tiles of 128 x 256 need two waves. In tiles of 64 x 64 they are 872, 9 waves of an eighth of
// the work, each slower by (1 + 20 / 64 + 20 / 64) / (1 + 20 / 128 + 20 / 256) = 1.625 / 1.234375:
// 1.481 waves in all. 128 x 128 would be 3 waves of half the work: 1.595.
TEST(GemmTime, TakesSmallerTilesWhenTheyWasteLess) {
  const Kernel kernel = gemm(1, 109 * 128, 256, 4096);
  const double wave = 2.0 * 128 * 256 * 4096 / (0.94 * 312e12 / 108);
  EXPECT_NEAR(kernel_time(kernel, reference_a100()).value, 9.0 / 8 * wave * 1.625 / 1.234375, 1e-9);
}

TEST(GemmTime, GrowsWithEveryDimension) {
  const DeviceModel device = reference_a100();
  for (const std::int64_t m : {1, 64, 65, 1000, 4096})
    for (const std::int64_t n : {1, 96, 129, 3000})
      for (const std::int64_t k : {1, 33, 128, 5000}) {
        const Seconds here = kernel_time(gemm(3, m, n, k), device);
        EXPECT_LE(here, kernel_time(gemm(4, m, n, k), device));
        EXPECT_LE(here, kernel_time(gemm(3, m + 1, n, k), device));
        EXPECT_LE(here, kernel_time(gemm(3, m, n + 1, k), device));
        EXPECT_LE(here, kernel_time(gemm(3, m, n, k + 1), device));
        EXPECT_GE(here.value, 2.0 * 3 * static_cast<double>(m * n * k) / 312e12);
      }
}

// The sweep was timed product by product from the host, which adds 29 us to each (the time of the
// smallest products). With that, one efficiency and one edge fit all twenty rows.
TEST(GemmTime, FitsTheMeasuredSweepOfAnA100) {
  DeviceModel device = reference_a100();
  device.launch_overhead = Seconds(29e-6);
  double sum = 0, worst = 0;
  const std::vector<CsvRow> rows = csv_rows("gemm_a100.csv");
  ASSERT_EQ(rows.size(), 20u);
  for (const CsvRow& row : rows) {
    const Kernel kernel =
        gemm(1, std::stoll(row.at("m")), std::stoll(row.at("n")), std::stoll(row.at("k")));
    const double measured = 1e-3 * std::stod(row.at("time_ms"));
    const double error = std::abs(kernel_time(kernel, device).value / measured - 1);
    sum += error;
    worst = std::max(worst, error);
  }
  fmt::print("GEMM, A100, 20 shapes: mean error {:.1f} %, worst {:.1f} %\n", 5 * sum, 100 * worst);
  EXPECT_LT(sum / 20, 0.02);
  EXPECT_LT(worst, 0.05);
}

// 20 launches of 5 us, and 1 GB at 0.91 * 2.039 TB/s as if each launch moved 1 MB more.
TEST(MemoryBoundTime, CountsLaunchesAndRamp) {
  DeviceModel device = reference_a100();
  device.launch_overhead = Seconds(5e-6);
  device.memory_efficiency.half_speed_bytes = Bytes(1'000'000);
  Kernel kernel;
  kernel.memory_traffic = Bytes(1'000'000'000);
  kernel.launches = 20;
  EXPECT_NEAR(kernel_time(kernel, device).value, 100e-6 + 1.02e9 / (0.91 * 2.039e12), 1e-12);
  // A single launch of half_speed_bytes runs at half the speed.
  kernel = {};
  kernel.memory_traffic = Bytes(1'000'000);
  EXPECT_NEAR(kernel_time(kernel, device).value, 5e-6 + 2e6 / (0.91 * 2.039e12), 1e-12);
}

Kernel attention(std::int64_t heads, std::int64_t length, std::int64_t head_size, bool causal) {
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.causal = causal;
  kernel.batch = heads;
  kernel.m = kernel.n = length;
  kernel.k = kernel.value_size = head_size;
  kernel.flops =
      Flops((causal ? 2.0 : 4.0) * static_cast<double>(heads * length * length * head_size));
  kernel.memory_traffic = Bytes(8 * heads * length * head_size);
  return kernel;
}

// 64 heads, 2048 x 2048 scores of 128: 1024 blocks fill the device. 4 * 64 * 2048^2 * 128 = 137.4
// GFLOP at 0.5 * 312 TFLOP/s; the causal half of it once more 1/16 for the blocks on the diagonal.
TEST(AttentionTime, HalvesCausalWorkExceptForTheDiagonal) {
  const DeviceModel device = reference_a100();  // forward 0.5, backward 0.4
  const double full = 4.0 * 64 * 2048 * 2048 * 128 / 156e12;
  EXPECT_NEAR(kernel_time(attention(64, 2048, 128, false), device).value, full, 1e-9);
  EXPECT_NEAR(kernel_time(attention(64, 2048, 128, true), device).value, full / 2 * 17 / 16, 1e-9);
}

// A head size of 108 is worked on as 128; one head of 128 queries uses one multiprocessor of 108.
TEST(AttentionTime, PadsHeadsAndNeedsBlocks) {
  const DeviceModel device = reference_a100();
  EXPECT_NEAR(kernel_time(attention(64, 2048, 108, false), device).value,
              kernel_time(attention(64, 2048, 128, false), device).value, 1e-9);
  const double whole = 4.0 * 128 * 128 * 128 / 156e12;
  EXPECT_NEAR(kernel_time(attention(1, 128, 128, false), device).value, 108 * whole, 1e-9);
}

}  // namespace
}  // namespace meshwright
