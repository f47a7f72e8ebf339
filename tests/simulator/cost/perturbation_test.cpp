#include "simulator/cost/perturbation.hpp"

#include <gtest/gtest.h>

#include "simulator/cost/device_cost_model.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::literals;
using namespace meshwright::testing;

// Inside a node of DGX A100 216 MB take 1 ms (device_cost_model_test.cpp), between nodes 25 MB.
TEST(ScaledLinks, MessagesTakeTheirBytesOverTheScaledBandwidth) {
  const Cluster cluster = cluster_of(dgx_a100(), 4);
  const auto base = make_device_cost_model(cluster);
  const auto faster = scaled_links(*base, cluster, 1.25);
  const TransferCost local = faster->cost_of({.bytes = Bytes(270'000'000)});
  EXPECT_NEAR(local.occupancy.value, 1e-3, 1e-12);
  EXPECT_EQ(local.latency.value, 2e-6);  // latency is not bandwidth
  const auto slower = scaled_links(*base, cluster, 0.5);
  const Transfer across{.bytes = Bytes(25'000'000), .crosses_nodes = true};
  EXPECT_NEAR(slower->cost_of(across).occupancy.value, 2e-3, 1e-12);
}

// 8 ranks in a node, 8 MB each: 11.8 us, and 7/8 of them at half of 216 GB/s.
TEST(ScaledLinks, CollectivesKeepTheirLatency) {
  const Cluster cluster = cluster_of(dgx_a100(), 4);
  const auto base = make_device_cost_model(cluster);
  const Collective exchange{
      .kind = CollectiveKind::kAllToAll, .bytes = Bytes(8'000'000), .group = {.ranks = 8}};
  EXPECT_NEAR(scaled_links(*base, cluster, 0.5)->time_of(exchange).value, 11.8e-6 + 14e6 / 216e9,
              1e-12);
}

// Of 16 ranks on two nodes, 8 MB each, 2 MB cross by one port of 25 GB/s: at half of it 160 us.
TEST(ScaledLinks, ScalesWhatCrossesNodesInTwoHops) {
  const Cluster cluster = cluster_of(dgx_a100(), 4);
  const auto base = make_device_cost_model(cluster);
  Collective exchange{.kind = CollectiveKind::kAllToAll,
                      .bytes = Bytes(8'000'000),
                      .group = {.ranks = 16, .nodes = 2}};
  exchange.sent_across_nodes = Bytes(2'000'000);
  EXPECT_NEAR(scaled_links(*base, cluster, 0.5)->time_of(exchange).value, 2 * 22.4e-6 + 160e-6,
              1e-12);
}

TEST(ScaledLinks, ByOneIsTheModelItself) {
  const Cluster cluster = cluster_of(dgx_h100(), 4);
  const auto base = make_device_cost_model(cluster);
  const auto same = scaled_links(*base, cluster, 1);
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kBroadcast})
    for (const std::int64_t bytes : {0, 1, 1 << 20, 1 << 30}) {
      const Collective collective{
          .kind = kind, .bytes = Bytes(bytes), .group = {.ranks = 32, .nodes = 4}};
      EXPECT_EQ(same->time_of(collective), base->time_of(collective));
    }
  EXPECT_EQ(same->provenance(), base->provenance());
}

TEST(ScaledLinks, KeepsAMessageOfOneByte) {
  const Cluster cluster = cluster_of(dgx_a100(), 4);
  const auto base = make_device_cost_model(cluster);
  const Collective byte{
      .kind = CollectiveKind::kAllReduce, .bytes = Bytes(1), .group = {.ranks = 8}};
  EXPECT_GT(scaled_links(*base, cluster, 100)->time_of(byte), Seconds(0.0));
}

// On the second type of nodes, ports are half as fast.
TEST(ScaledLinks, ScalesEveryTypeOfNodes) {
  Cluster cluster = cluster_of(dgx_a100(), 4);
  NodeModel other = cluster.nodes.begin()->second;
  other.name = "other";
  other.port_bandwidth = 0.5 * other.port_bandwidth;
  cluster.nodes["other"] = other;
  cluster.groups.push_back({.node = "other", .count = 4});
  const auto base = make_device_cost_model(cluster);
  const auto slower = scaled_links(*base, cluster, 0.5);
  const Transfer across{.bytes = Bytes(25'000'000), .crosses_nodes = true};
  EXPECT_NEAR(slower->on_nodes(0).cost_of(across).occupancy.value, 2e-3, 1e-12);
  EXPECT_NEAR(slower->on_nodes(1).cost_of(across).occupancy.value, 4e-3, 1e-12);
  EXPECT_NEAR(slower->on_nodes(-1).cost_of(across).occupancy.value, 4e-3, 1e-12);
}

TEST(Perturbation, ChangesOneFigureOfAllDevices) {
  const Cluster cluster = cluster_of(dgx_a100(), 4);
  const DeviceModel& before = cluster.devices.begin()->second;
  constexpr auto kBf16 = static_cast<std::size_t>(Dtype::kBf16);
  Cluster changed = perturbed(cluster, {HardwareFigure::kPeakCompute, 0.5});
  EXPECT_EQ(changed.devices.begin()->second.peak[kBf16], *before.peak[kBf16] * 0.5);
  EXPECT_EQ(changed.devices.begin()->second.memory, before.memory);
  changed = perturbed(cluster, {HardwareFigure::kMemory, 0.5});
  EXPECT_EQ(changed.devices.begin()->second.memory, Bytes(before.memory.value / 2));
  EXPECT_EQ(changed.devices.begin()->second.peak, before.peak);
  EXPECT_EQ(perturbed(cluster, {HardwareFigure::kLinkBandwidth, 0.5}), cluster);
}

TEST(Perturbation, OfThePeakChangesMeasuredProductsAndNothingElse) {
  Calibration calibration;
  calibration.kernels = {
      {.family = {.kind = KernelKind::kGemm}, .points = {{.time = 2_ms}}},
      {.family = {.kind = KernelKind::kMemoryBound}, .points = {{.time = 2_ms}}}};
  const Calibration changed = perturbed(calibration, {HardwareFigure::kPeakCompute, 2});
  EXPECT_EQ(changed.kernels[0].points[0].time, 1_ms);
  EXPECT_EQ(changed.kernels[1].points[0].time, 2_ms);
  EXPECT_EQ(perturbed(calibration, {HardwareFigure::kMemory, 2}), calibration);
}

}  // namespace
}  // namespace meshwright
