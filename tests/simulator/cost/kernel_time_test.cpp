#include "simulator/cost/kernel_time.hpp"

#include <gtest/gtest.h>

#include <cmath>

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

constexpr KernelConditions kBurstClocks{.power = PowerState::kBurst};

/// Time of arithmetic and memory traffic that proceed together.
double cubic_mean(double a, double b) { return std::cbrt(a * a * a + b * b * b); }

// Derived in kernel_time.hpp. The traffic of 2 (8192 * 1024 + 1024 * 12288 + 8192 * 12288) =
// 243269632 bytes at 0.91 * 2.039 TB/s takes 131.1 us, which the cubic mean adds 0.13 % for.
TEST(GemmTime, MatchesTheWorkedNumber) {
  EXPECT_NEAR(cubic_mean(826.92e-6, 131.109e-6), 828.02e-6, 1e-8);
  const Seconds time = kernel_time(gemm(1, 8192, 12288, 1024), reference_a100(), kBurstClocks);
  EXPECT_NEAR(time.value, 828.02e-6, 2e-8);
}

// 64 x 12288 x 12288 reads 302 MB of weights: 0.91 * 2.039 TB/s decide, not the tiles.
TEST(GemmTime, IsNeverBelowTheMemoryTraffic) {
  const Kernel kernel = gemm(1, 64, 12288, 12288);
  const double memory = static_cast<double>(kernel.memory_traffic.value) / (0.91 * 2.039e12);
  // 192 tiles: 1.7778 waves count as 0.6 * 2 + 0.4 * 1.7778 = 1.9111.
  const double product = 1.9111111 * 2 * 64 * 64 * 12288 / (0.8 * 312e12 / 108);
  EXPECT_NEAR(kernel_time(kernel, reference_a100(), kBurstClocks).value,
              cubic_mean(product, memory), 1e-9);
}

// Half of the result's traffic is exposed: 2 bytes per element, or 6 if added to fp32 values. 108
// million elements at 0.91 * 2.039 TB/s: 4 bytes more take 232.8 us, half of it 116.4 us.
TEST(GemmTime, AddsWeightGradientsToFp32Values) {
  DeviceModel device = reference_a100();
  device.gemm.exposed_write = 0.5;
  Kernel kernel = gemm(1, 10'800, 10'000, 1024);
  const double write = kernel_time(kernel, device, kBurstClocks).value;
  kernel.phase = Phase::kBackwardWeight;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value - write, 116.4e-6, 1e-7);
}

// 108 tiles of 128 x 64 fill the device once; the same rows in tiles of 64 x 64 are 216, two waves
// of half the work, slower by (1 + 20 / 64 + 20 / 64) / (1 + 20 / 128 + 20 / 64). With 54 tiles of
// 128 x 64, the 108 small ones win: half the work of a wave, at 1.625 / 1.46875.
TEST(GemmTime, TakesSmallerTilesWhenTheyWasteLess) {
  DeviceModel device = reference_a100();
  device.gemm.tile_m = 128;
  device.gemm.tile_edge = 20;
  device.gemm.memory_share = 1;
  device.memory_bandwidth = BytesPerSecond(1e20);  // no memory time
  const double wave = 2.0 * 128 * 64 * 4096 / (0.8 * 312e12 / 108);
  EXPECT_NEAR(kernel_time(gemm(1, 108 * 128, 64, 4096), device, kBurstClocks).value, wave, 1e-10);
  EXPECT_NEAR(kernel_time(gemm(1, 54 * 128, 64, 4096), device, kBurstClocks).value,
              wave / 2 * 1.625 / 1.46875, 1e-10);
}

// One tile on its own, k = 1000 counts as 1024 and 24 more: 1048 / 4096 of the tile above. Its
// result of 8192 bytes is written afterwards, half of it exposed, at 1 GB/s: 4.096 us.
TEST(GemmTime, AddsOverheadOfTilesAndExposedWrites) {
  DeviceModel device = reference_a100();
  device.gemm.depth_overhead = 24;
  device.gemm.exposed_write = 0.5;
  device.gemm.ramp = Seconds(1e-6);
  device.launch_overhead = Seconds(2e-6);
  device.gemm.memory_share = 1;
  device.memory_bandwidth = BytesPerSecond(1e9);
  Kernel kernel = gemm(1, 64, 64, 1000);
  kernel.memory_traffic = Bytes(0);
  const double tile = 2.0 * 64 * 64 * 1048 / (0.8 * 312e12 / 108);
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, 3e-6 + tile + 4.096e-6, 1e-12);
}

// 312 GFLOP at 312 TFLOP/s take 1 ms, the droop time: half-way from 0.8 to 0.7. Training runs at
// its own share, which is that of a long burst unless given.
TEST(GemmTime, SlowsDownWithThePowerLimit) {
  DeviceModel device = reference_a100();
  const auto share = [&](double work, PowerState power) {
    return product_share(device, Flops(work), ProductFormat::kBf16, power);
  };
  EXPECT_EQ(share(312e9, PowerState::kBurst), 0.8);
  device.gemm.long_efficiency = 0.7;
  device.gemm.droop_time = Seconds(1e-3);
  EXPECT_NEAR(share(312e9, PowerState::kBurst), 0.75, 1e-12);
  EXPECT_EQ(share(1, PowerState::kSustained), 0.7);
  device.gemm.sustained_efficiency = 0.6;
  EXPECT_EQ(share(1, PowerState::kSustained), 0.6);
}

// Half-way from 0.9 * 0.8 to 0.5 * 0.7 at 624 GFLOP, 1 ms at the peak of fp8.
TEST(GemmTime, SlowsDownEightBitFormatsMore) {
  DeviceModel device = reference_a100();
  const auto fp8 = static_cast<std::size_t>(ProductFormat::kFp8);
  device.peak[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(624e12);
  device.gemm.long_efficiency = 0.7;
  device.gemm.droop_time = Seconds(1e-3);
  device.gemm.format_share[fp8] = 0.9;
  device.gemm.format_long_share[fp8] = 0.5;
  EXPECT_NEAR(product_share(device, Flops(624e9), ProductFormat::kFp8, PowerState::kBurst),
              (0.72 + 0.35) / 2, 1e-12);
  EXPECT_NEAR(product_share(device, {}, ProductFormat::kFp8, PowerState::kSustained), 0.35, 1e-12);
  // 343 W of 1000 W: 0.7 of the clock in training, the full one in a burst.
  device.design_power = Watts(1000);
  device.power_limit = Watts(343);
  EXPECT_NEAR(product_share(device, {}, ProductFormat::kFp8, PowerState::kSustained), 0.245, 1e-12);
}

// Twice the peak at 0.9 of the share; a grouped one at 0.5 of that.
TEST(GemmTime, UsesPeakAndShareOfTheFormat) {
  DeviceModel device = reference_a100();
  device.memory_bandwidth = BytesPerSecond(1e20);
  device.peak[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(624e12);
  device.gemm.format_share[static_cast<std::size_t>(ProductFormat::kFp8)] = 0.9;
  device.gemm.format_long_share[static_cast<std::size_t>(ProductFormat::kFp8)] = 0.9;
  device.gemm.grouped_share = 0.5;
  Kernel kernel = gemm(108, 64, 64, 4096);
  const double bf16 = kernel_time(kernel, device, kBurstClocks).value;
  kernel.dtype = Dtype::kFp8;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, bf16 / 2 / 0.9, 1e-12);
  kernel.format = ProductFormat::kBf16;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, bf16, 1e-12);
  kernel.kind = KernelKind::kGroupedGemm;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, 2 * bf16, 1e-12);
}

TEST(GemmTime, OfAGroupOfOneIsThatOfOneProduct) {
  Kernel kernel = gemm(1, 4096, 4096, 4096);
  const Seconds alone = kernel_time(kernel, reference_a100(), kBurstClocks);
  kernel.kind = KernelKind::kGroupedGemm;
  EXPECT_EQ(kernel_time(kernel, reference_a100(), kBurstClocks), alone);
}

TEST(GemmTime, GrowsWithEveryDimension) {
  const DeviceModel device = reference_a100();
  for (const std::int64_t m : {1, 64, 65, 1000, 4096})
    for (const std::int64_t n : {1, 96, 129, 3000})
      for (const std::int64_t k : {1, 33, 128, 5000}) {
        const Seconds here = kernel_time(gemm(3, m, n, k), device, kBurstClocks);
        EXPECT_LE(here, kernel_time(gemm(4, m, n, k), device, kBurstClocks));
        EXPECT_LE(here, kernel_time(gemm(3, m + 1, n, k), device, kBurstClocks));
        EXPECT_LE(here, kernel_time(gemm(3, m, n + 1, k), device, kBurstClocks));
        EXPECT_LE(here, kernel_time(gemm(3, m, n, k + 1), device, kBurstClocks));
        EXPECT_GE(here.value, 2.0 * 3 * static_cast<double>(m * n * k) / 312e12);
      }
}

// 20 launches of 5 us, and 1 GB at 0.91 * 2.039 TB/s as if each launch moved 1 MB more.
TEST(MemoryBoundTime, CountsLaunchesAndRamp) {
  DeviceModel device = reference_a100();
  device.launch_overhead = Seconds(5e-6);
  device.memory_efficiency.half_speed_bytes = Bytes(1'000'000);
  Kernel kernel;
  kernel.memory_traffic = Bytes(1'000'000'000);
  kernel.launches = 20;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, 100e-6 + 1.02e9 / (0.91 * 2.039e12),
              1e-12);
  // A single launch of half_speed_bytes runs at half the speed.
  kernel = {};
  kernel.memory_traffic = Bytes(1'000'000);
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, 5e-6 + 2e6 / (0.91 * 2.039e12),
              1e-12);
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

// 108 heads of 1024 queries are 864 blocks, 8 full waves. 4 * 108 * 1024^2 * 128 = 58.0 GFLOP at
// 0.5 * 312 TFLOP/s; the causal half of it once more 1/8 for the blocks on the diagonal. Without
// memory traffic, the cubic mean adds nothing.
TEST(AttentionTime, HalvesCausalWorkExceptForTheDiagonal) {
  DeviceModel device = reference_a100();  // forward 0.5, backward 0.4
  device.memory_bandwidth = BytesPerSecond(1e20);
  const double full = 4.0 * 108 * 1024 * 1024 * 128 / 156e12;
  EXPECT_NEAR(kernel_time(attention(108, 1024, 128, false), device, kBurstClocks).value, full,
              1e-9);
  EXPECT_NEAR(kernel_time(attention(108, 1024, 128, true), device, kBurstClocks).value,
              full / 2 * 9 / 8, 1e-9);
}

// Half of the share at 1024 keys if that is the half length, two thirds at 2048.
TEST(AttentionTime, ReachesItsShareAtLongSequences) {
  DeviceModel device = reference_a100();
  device.memory_bandwidth = BytesPerSecond(1e20);
  device.attention.forward.half_length_full = 1024;
  const double at_1k = 4.0 * 108 * 1024 * 1024 * 128 / 156e12 * 2;
  const double at_2k = 4.0 * 108 * 2048 * 2048 * 128 / 156e12 * 1.5;
  EXPECT_NEAR(kernel_time(attention(108, 1024, 128, false), device, kBurstClocks).value, at_1k,
              1e-9);
  EXPECT_NEAR(kernel_time(attention(108, 2048, 128, false), device, kBurstClocks).value, at_2k,
              1e-9);
}

// Half a doubling from 64 to 128 is a size of 90.5; 96 is 0.415 doublings below 128. Sizes above
// 256 stay at its share. 108 is worked on as 128, at the share of 108.
TEST(AttentionTime, DependsOnTheHeadSize) {
  DeviceModel device = reference_a100();
  device.memory_bandwidth = BytesPerSecond(1e20);
  device.attention.forward.head_64 = 0.3;
  device.attention.forward.head_256 = 0.4;
  const auto rate = [&](std::int64_t head) {
    return 4.0 * 108 * 1024 * 1024 * static_cast<double>(head) / 312e12 /
           kernel_time(attention(108, 1024, head, false), device, kBurstClocks).value;
  };
  EXPECT_NEAR(rate(32), 0.3, 1e-6);
  EXPECT_NEAR(rate(64), 0.3, 1e-6);
  EXPECT_NEAR(rate(96), 0.5 - 0.2 * 0.4150375, 1e-6);
  EXPECT_NEAR(rate(256), 0.4, 1e-6);
  EXPECT_NEAR(rate(512), 0.4, 1e-6);
  EXPECT_NEAR(rate(108), (0.5 - 0.2 * 0.2451125) * 108 / 128, 1e-6);
}

// One head of 128 queries uses one multiprocessor of 108, and the wave takes its whole time.
TEST(AttentionTime, NeedsBlocks) {
  DeviceModel device = reference_a100();
  device.memory_bandwidth = BytesPerSecond(1e20);
  const double whole = 4.0 * 128 * 128 * 128 / 156e12;
  EXPECT_NEAR(kernel_time(attention(1, 128, 128, false), device, kBurstClocks).value, 108 * whole,
              1e-9);
}

// Training at 0.75 of the rate of a burst; FlashAttention-2 at half of it.
TEST(AttentionTime, SlowsDownWithThePowerLimit) {
  DeviceModel device = reference_a100();
  device.memory_bandwidth = BytesPerSecond(1e20);
  device.attention.sustained_share = 0.75;
  device.flash_attention_2 = device.attention;
  device.flash_attention_2->forward.head_128 = 0.25;
  const Kernel kernel = attention(108, 1024, 128, false);
  const double burst = kernel_time(kernel, device, kBurstClocks).value;
  EXPECT_NEAR(kernel_time(kernel, device, {.power = PowerState::kSustained}).value, burst / 0.75,
              1e-9);
  EXPECT_NEAR(
      kernel_time(kernel, device, {PowerState::kBurst, AttentionLibrary::kFlashAttention2}).value,
      2 * burst, 1e-9);
}

// Random numbers take half of the forward pass; Triton's kernels 1.4 times as long forward, twice
// as long backward.
TEST(AttentionTime, DependsOnDropoutAndLibrary) {
  DeviceModel device = reference_a100();
  device.memory_bandwidth = BytesPerSecond(1e20);
  device.attention.forward.dropout_share = 0.5;
  Kernel kernel = attention(108, 1024, 128, false);
  const double plain = kernel_time(kernel, device, kBurstClocks).value;
  const KernelConditions triton{PowerState::kBurst, AttentionLibrary::kTriton};
  EXPECT_NEAR(kernel_time(kernel, device, triton).value, 1.4 * plain, 1e-9);
  kernel.dropout = true;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, 2 * plain, 1e-9);
  kernel = attention(108, 1024, 128, false);
  kernel.phase = Phase::kBackwardInput;
  EXPECT_NEAR(kernel_time(kernel, device, triton).value,
              2 * kernel_time(kernel, device, kBurstClocks).value, 1e-9);
}

// The family of a routine and its phase: norms backward reach half of what others do here.
TEST(MemoryBoundTime, UsesTheBandwidthOfTheFamily) {
  DeviceModel device = reference_a100();  // 0.91
  device.streams[static_cast<std::size_t>(StreamFamily::kNormBackward)] = {
      .max_efficiency = 0.455, .half_speed_bytes = Bytes(0)};
  Kernel kernel;
  kernel.memory_traffic = Bytes(1'000'000'000);
  kernel.routine = Routine::kRmsNorm;
  const double forward = kernel_time(kernel, device, kBurstClocks).value;
  EXPECT_NEAR(forward, 1e9 / (0.91 * 2.039e12), 1e-12);
  kernel.phase = Phase::kBackwardInput;
  EXPECT_NEAR(kernel_time(kernel, device, kBurstClocks).value, 2 * forward, 1e-12);
}

}  // namespace
}  // namespace meshwright
