#include "simulator/cost/collective_time.hpp"

#include <gtest/gtest.h>

#include "simulator/cost/device_cost_model.hpp"
#include "simulator/fit/fit_collectives.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::testing;

constexpr double kMicro = 1e-6;
constexpr Bytes kMiB(1 << 20);

Cluster measured_cluster(ReferenceSystem system, const CollectiveParameters& device,
                         const NetworkParameters& network = {}) {
  system.device.collectives = device;
  system.fabric.collectives = network;
  return cluster_of(system, 4);
}
Seconds time_on(const Cluster& cluster, const Collective& collective) {
  return make_device_cost_model(cluster, Trainer{})->time_of(collective);
}
NcclAlgorithm algorithm_on_h200(int ranks) {
  const ReferenceSystem h200 = dgx_h100();  // the same NVLink
  const NcclGroup group = nccl_group_of(h200.device, h200.node, {.ranks = ranks});
  return estimate_collective(group, CollectiveKind::kAllReduce, Bytes(1LL << 33)).algorithm;
}

// (sqrt(4) + sqrt(9))^2 = 25; 3 and 4 under the square root of squares: 5; 1: the sum.
TEST(BlendedTime, LiesBetweenTheLargerAndMoreThanTheSum) {
  EXPECT_NEAR(blended_time(Seconds(4.0), Seconds(9.0), 0.5).value, 25, 1e-12);
  EXPECT_NEAR(blended_time(Seconds(3.0), Seconds(4.0), 2).value, 5, 1e-12);
  EXPECT_EQ(blended_time(Seconds(3.0), Seconds(4.0), 1), Seconds(7.0));
  EXPECT_EQ(blended_time(Seconds(0.0), Seconds(0.0), 0.5), Seconds(0.0));
  EXPECT_EQ(blended_time(Seconds(0.0), Seconds(2.0), 3), Seconds(2.0));
}

// The worked number of the header: 2 x H100, ring with Simple over 12 channels of 30 GB/s. Latency
// 12 + 0.7 * 2 * 3.4 = 16.76 us; 1.3 * 134217728 B / (1.1 * 360 GB/s) = 440.6 us.
TEST(CollectiveTime, CorrectsEveryPartOfARing) {
  CollectiveParameters device;
  device.simple = {.base = Seconds(12e-6), .hop = 0.7, .bandwidth = 1.1};
  device.own_part = 0.6;
  const Seconds time =
      time_on(measured_cluster(dgx_h100(), device),
              {.kind = CollectiveKind::kAllReduce, .bytes = 128 * kMiB, .group = {.ranks = 2}});
  EXPECT_NEAR(time.value, 16.76e-6 + 1.3 * 134217728 / 396e9, 1e-12);
}

// Without a measured base: the launch (device, 2 us) and NCCL's 8.4 us.
TEST(CollectiveTime, CountsTheLaunchWhereNoBaseIsMeasured) {
  ReferenceSystem system = dgx_h100();
  system.device.launch_overhead = Seconds(2e-6);
  const Collective collective{
      .kind = CollectiveKind::kAllReduce, .bytes = 128 * kMiB, .group = {.ranks = 2}};
  const Seconds time = time_on(measured_cluster(system, {}), collective);
  EXPECT_NEAR(time.value, (2 + 8.4 + 2 * 3.4) * kMicro + 134217728 / 360e9, 1e-12);
  EXPECT_NEAR(time.value, time_on(cluster_of(system, 4), collective).value, 1e-12);
}

// The defaults correct nothing: ring and tree within and across nodes, all-to-all.
TEST(CollectiveTime, IsNcclsEstimateWithDefaultParameters) {
  for (const GroupShape shape : {GroupShape{.ranks = 8}, GroupShape{.ranks = 32, .nodes = 4},
                                 GroupShape{.ranks = 4, .nodes = 4, .groups_per_node = 8}})
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                      CollectiveKind::kBroadcast, CollectiveKind::kAllToAll})
      for (const std::int64_t bytes : {std::int64_t{4096}, std::int64_t{1} << 28}) {
        const Collective collective{.kind = kind, .bytes = Bytes(bytes), .group = shape};
        EXPECT_NEAR(time_on(measured_cluster(dgx_a100(), {}), collective).value,
                    time_on(cluster_of(dgx_a100(), 4), collective).value, 1e-12)
            << name_of(kind) << " " << shape.nodes << " " << bytes;
      }
}

// Measured (hardware of NVLink 4): NVLS from five GPUs.
TEST(CollectiveTime, ReducesInTheSwitchFromFiveGpusOnHopper) {
  EXPECT_EQ(algorithm_on_h200(4), NcclAlgorithm::kRing);
  for (int ranks = 5; ranks <= 8; ++ranks)
    EXPECT_EQ(algorithm_on_h200(ranks), NcclAlgorithm::kNvls) << ranks;
}

// 2 x 8 B200 with eight ports of 50 GB/s: NVLSTree. Through the ports 2 * 400 GB/s of busbw, times
// n / (2 (n - 1)) = 16 / 30: 426.7 GB/s. The switches are faster: 8 * 80 * 0.74 * 7/8 * 2 = 828.8,
// times 16 / 30 = 442.0 GB/s. At half of it they are what limits.
TEST(CollectiveTime, RunsNvlsTreeAtTheSlowerOfSwitchAndPorts) {
  CollectiveParameters device;
  device.nvls = {.base = Seconds(0.0)};
  NetworkParameters network{.hop = 0};
  const Collective collective{.kind = CollectiveKind::kAllReduce,
                              .bytes = Bytes(4'267'000'000),
                              .group = {.ranks = 16, .nodes = 2},
                              .algorithm = CollectiveAlgorithm::kNvls};
  device.nvls.hop = 0;
  EXPECT_NEAR(time_on(measured_cluster(dgx_b200(), device, network), collective).value,
              4.267e9 / (800e9 * 16 / 30), 1e-9);
  device.nvls.bandwidth = 0.5;
  EXPECT_NEAR(time_on(measured_cluster(dgx_b200(), device, network), collective).value,
              4.267e9 / (0.5 * 828.8e9 * 16 / 30), 1e-9);
}

// 8 A100 on each of two nodes, all-gather of 16 GB by ring with Simple: 8 ports carry 24 GB/s each;
// 15 steps, 14 within nodes of max(3.4, 6) us (AMD), 1 across of 14 us; 192 GB/s * 16 / 15. The
// network adds 20 us, doubles the hop across, and attains 0.9.
TEST(CollectiveTime, CorrectsTheNetworkSeparately) {
  const Collective collective{.kind = CollectiveKind::kAllGather,
                              .bytes = Bytes(16'000'000'000),
                              .group = {.ranks = 16, .nodes = 2}};
  CollectiveParameters device;
  device.simple.base = Seconds(10e-6);
  device.simple.bandwidth = 0.5;  // of NVLink: does not count here
  const NetworkParameters network{.base = Seconds(20e-6), .hop = 2, .bandwidth = 0.9};
  EXPECT_NEAR(time_on(measured_cluster(dgx_a100(), device, network), collective).value,
              (10 + 20 + 14 * 6 + 2 * 14) * kMicro + 16e9 / (0.9 * 192e9 * 16 / 15), 1e-9);
}

// PCIe 5: NCCL assumes 48 of 64 GB/s. Two devices reach that, four 0.6 of it, whatever the CPU.
TEST(CollectiveTime, CrowdsMoreThanTwoDevicesOverPcie) {
  ReferenceSystem system = dgx_a100();
  system.node.local.kind = LocalNetworkKind::kPcie;
  system.node.local.bandwidth = BytesPerSecond(64e9);
  CollectiveParameters device;
  device.simple = {.base = Seconds(0.0), .hop = 0};
  device.pcie_crowding = 0.6;
  const Cluster cluster = measured_cluster(system, device);
  const auto time = [&](int ranks) {
    return time_on(cluster, {.kind = CollectiveKind::kAllGather,
                             .bytes = Bytes(4'800'000'000),
                             .group = {.ranks = ranks}})
        .value;
  };
  EXPECT_NEAR(time(2), 0.1 * 1 / 2, 1e-9);
  EXPECT_NEAR(time(4), 0.1 * 3 / 4 / 0.6, 1e-9);
  EXPECT_NEAR(time(8), 0.1 * 7 / 8 / 0.6, 1e-9);
}

// 8 H100, all-to-all of 800 MB: 100 MB to each of seven others and 0.5 * 100 MB for the own part at
// 0.8 of 370.8 GB/s; one batch of sends, 12 us.
TEST(CollectiveTime, SendsAllToAllAtItsOwnRate) {
  CollectiveParameters device;
  device.all_to_all = {
      .small_base = Seconds(7e-6), .large_base = Seconds(12e-6), .bandwidth = 0.8, .own_part = 0.5};
  const Cluster cluster = measured_cluster(dgx_h100(), device);
  Collective collective{
      .kind = CollectiveKind::kAllToAll, .bytes = Bytes(800'000'000), .group = {.ranks = 8}};
  EXPECT_NEAR(time_on(cluster, collective).value, 12e-6 + 0.75e9 / (0.8 * 370.8e9), 1e-12);
  collective.bytes = Bytes(8 * 1024);
  EXPECT_NEAR(time_on(cluster, collective).value, 7e-6 + 7.5 * 1024 / (0.8 * 370.8e9), 1e-12);
}

// Rows that the model itself made, from parameters that the fit does not know.
TEST(FitCollectives, FindsTheParametersThatMadeTheMeasurements) {
  CollectiveParameters truth = plain_collective_parameters();
  truth.simple = {.base = Seconds(21e-6), .hop = 1.5, .bandwidth = 0.93, .blend = 0.9};
  truth.own_part = 0.7;
  std::vector<MeasuredCollective> rows;
  const Cluster made = measured_cluster(dgx_a100(), truth);
  for (const int ranks : {2, 4, 8})
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather})
      for (int exponent = 21; exponent <= 31; ++exponent) {
        const Collective collective{
            .kind = kind, .bytes = Bytes(std::int64_t{1} << exponent), .group = {.ranks = ranks}};
        rows.push_back({.collective = collective, .time = time_on(made, collective)});
      }
  const CollectiveFit fit =
      fit_collectives({cluster_of(dgx_a100(), 1)}, rows, {.device = true, .network = false});
  EXPECT_TRUE(fit.converged);
  for (const double error : fit.errors) EXPECT_LT(std::abs(error), 0.01);
  EXPECT_NEAR(fit.device.simple.bandwidth, 0.93, 0.01);
  EXPECT_NEAR(fit.device.own_part, 0.7, 0.05);
  EXPECT_EQ(fit.network, NetworkParameters{});
  EXPECT_EQ(fit.device.nvls, plain_collective_parameters().nvls);  // no row depends on it
}

}  // namespace
}  // namespace meshwright
