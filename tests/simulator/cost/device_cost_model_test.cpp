#include "simulator/cost/device_cost_model.hpp"

#include <gtest/gtest.h>

#include "simulator/cost/nccl_model.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::testing;

std::unique_ptr<CostModel> model_of(const ReferenceSystem& system, int nodes = 4) {
  return make_device_cost_model(cluster_of(system, nodes));
}

Collective collective(CollectiveKind kind, std::int64_t bytes, GroupShape group) {
  return {.kind = kind, .bytes = Bytes(bytes), .group = group};
}

TEST(DeviceCostModel, SaysWhereItsFiguresAreFrom) {
  EXPECT_EQ(model_of(dgx_a100())->provenance(),
            "roofline model of A100-SXM4-80GB, NCCL 2.30 tuning model");
}

TEST(DeviceCostModel, ChargesNothingForAGroupOfOne) {
  const auto model = model_of(dgx_a100());
  EXPECT_EQ(model->time_of(collective(CollectiveKind::kAllReduce, 1 << 20, {.ranks = 1})).value, 0);
  EXPECT_EQ(model->time_of(collective(CollectiveKind::kAllReduce, 0, {.ranks = 8})).value, 0);
}

// Inside a node: 300 GB/s by the datasheet, 240 for NCCL, 0.9 of it for sends: 216 MB take 1 ms.
// Between nodes: one port of 25 GB/s; 16 messages share 8 ports: 12.5 GB/s each.
TEST(DeviceCostModel, SendsAtTheRateOfItsLinks) {
  const auto model = model_of(dgx_a100());
  const TransferCost local = model->cost_of({.bytes = Bytes(216'000'000)});
  EXPECT_NEAR(local.occupancy.value, 1e-3, 1e-12);
  EXPECT_EQ(local.latency.value, 2e-6);
  Transfer transfer{.bytes = Bytes(25'000'000), .crosses_nodes = true};
  EXPECT_NEAR(model->cost_of(transfer).occupancy.value, 1e-3, 1e-12);
  EXPECT_EQ(model->cost_of(transfer).latency.value, 5e-6);
  transfer.flows_per_node = 16;
  EXPECT_NEAR(model->cost_of(transfer).occupancy.value, 2e-3, 1e-12);
}

// 8 ranks in a node, 8 MB each: 7/8 leave at 216 GB/s, one batch of 11.8 us. 16 ranks on two
// nodes: 8/16 of 8 MB leave by one port of 25 GB/s (160 us), two batches of 22.4 us.
TEST(DeviceCostModel, PricesAnAllToAllByItsBusiestLink) {
  const auto model = model_of(dgx_a100());
  const Seconds local =
      model->time_of(collective(CollectiveKind::kAllToAll, 8'000'000, {.ranks = 8}));
  EXPECT_NEAR(local.value, 11.8e-6 + 7e6 / 216e9, 1e-12);
  const Seconds across =
      model->time_of(collective(CollectiveKind::kAllToAll, 8'000'000, {.ranks = 16, .nodes = 2}));
  EXPECT_NEAR(across.value, 2 * 22.4e-6 + 160e-6, 1e-12);
}

// 16 ranks on two nodes, 8 MB each of which 2 MB cross (80 us by one port of 25 GB/s); 7/8 of 8 MB
// are passed on inside the node at 216 GB/s (32.4 us).
TEST(DeviceCostModel, SendsOnceANodeInTwoHops) {
  const auto model = model_of(dgx_a100());
  Collective c = collective(CollectiveKind::kAllToAll, 8'000'000, {.ranks = 16, .nodes = 2});
  c.sent_across_nodes = Bytes(2'000'000);
  EXPECT_NEAR(model->time_of(c).value, 2 * 22.4e-6 + 80e-6, 1e-12);
  c.sent_across_nodes = Bytes(500'000);  // 20 us: now the intra-node links are busiest
  EXPECT_NEAR(model->time_of(c).value, 2 * 22.4e-6 + 7e6 / 216e9, 1e-12);
}

// 21.6 MB a message. Inside a node 100 us at 216 GB/s and 11.8 us; between nodes one message a ring
// leaves by a port of 25 GB/s, 864 us and 22.4 us; 16 rings share 8 ports.
TEST(DeviceCostModel, PricesARingExchangeByItsSlowestHop) {
  const auto model = model_of(dgx_a100());
  const auto time = [&](GroupShape shape, int rounds) {
    Collective c = collective(CollectiveKind::kRingExchange, 21'600'000, shape);
    c.rounds = rounds;
    return model->time_of(c).value;
  };
  EXPECT_NEAR(time({.ranks = 4}, 1), 111.8e-6, 1e-12);
  EXPECT_NEAR(time({.ranks = 4}, 3), 3 * 111.8e-6, 1e-12);
  EXPECT_NEAR(time({.ranks = 4, .nodes = 2}, 3), 3 * 886.4e-6, 1e-12);
  EXPECT_NEAR(time({.ranks = 4, .nodes = 2, .groups_per_node = 16}, 1), 1750.4e-6, 1e-12);
}

// Four processes on one CPU at 10 GB/s and 1 us: all-reduce of 40 MB is 6 steps of 10 MB.
TEST(DeviceCostModel, UsesPlainRingsWithoutNccl) {
  ReferenceSystem system = dgx_a100();
  system.device.compute_capability.reset();
  system.node.local = {.kind = LocalNetworkKind::kSharedMemory,
                       .bandwidth = BytesPerSecond(10e9),
                       .latency = Seconds(1e-6)};
  const auto model = model_of(system, 1);
  EXPECT_NEAR(
      model->time_of(collective(CollectiveKind::kAllReduce, 40'000'000, {.ranks = 4})).value,
      6 * (1e-6 + 1e-3), 1e-12);
  EXPECT_NEAR(
      model->time_of(collective(CollectiveKind::kAllGather, 40'000'000, {.ranks = 4})).value,
      3 * (1e-6 + 1e-3), 1e-12);
  EXPECT_EQ(model->provenance(),
            "roofline model of A100-SXM4-80GB, latency + size / bandwidth for collectives");
}

// The channels cached per shape are those of the shape itself.
TEST(DeviceCostModel, PricesEveryShapeByItsOwnChannels) {
  for (const ReferenceSystem& system : {dgx_a100(), p4de(), dgx_h100(), v100_mesh()}) {
    const auto model = model_of(system);
    for (int ppn = 1; ppn <= 9; ++ppn)
      for (int nodes = 1; nodes <= 5; ++nodes)
        for (int sharing = 1; sharing <= 9; ++sharing) {
          if (ppn * nodes == 1) continue;
          const GroupShape shape{.ranks = ppn * nodes, .nodes = nodes, .groups_per_node = sharing};
          const NcclChoice choice = nccl_choice(nccl_group_of(system.device, system.node, shape),
                                                CollectiveKind::kAllReduce, Bytes(1 << 24));
          EXPECT_EQ(model->time_of(collective(CollectiveKind::kAllReduce, 1 << 24, shape)),
                    choice.time);
        }
  }
}

// 1024 x 1024 fp16 gradients: the GEMM writes 2 bytes per element instead of adding to 4, and a
// kernel of its own moves 6: 6,291,456 bytes at 0.91 * 2.039 TB/s take 3.39 us.
TEST(DeviceCostModel, AddsUpWeightGradientsApart) {
  ReferenceSystem system = dgx_a100();
  const Cluster cluster = cluster_of(system, 1);
  Kernel kernel;
  kernel.kind = KernelKind::kGemm;
  kernel.phase = Phase::kForward;
  kernel.dtype = Dtype::kFp16;
  kernel.m = kernel.n = 1024;
  kernel.k = 4096;
  kernel.flops = Flops(2.0 * 1024 * 1024 * 4096);
  kernel.memory_traffic = Bytes(2 * (2 * 1024 * 4096 + 1024 * 1024));
  const double stored = model_of(system)->time_of(kernel).value;
  kernel.phase = Phase::kBackwardWeight;
  kernel.memory_traffic = Bytes(2 * 2 * 1024 * 4096 + 8 * 1024 * 1024);
  Trainer trainer;
  trainer.gradient_accumulation = {.is_fused = false, .fp16_bytes = 6, .bf16_bytes = 0};
  const auto apart = make_device_cost_model(cluster, trainer);
  EXPECT_NEAR(apart->time_of(kernel).value, stored + 6'291'456 / (0.91 * 2.039e12), 1e-9);
  EXPECT_DOUBLE_EQ(apart->launches_of(kernel), 2);
  kernel.dtype = Dtype::kBf16;
  EXPECT_NEAR(apart->time_of(kernel).value, stored, 1e-9);
  EXPECT_DOUBLE_EQ(apart->launches_of(kernel), 1);
}

// A collective is a kernel, too: its launch takes time.
TEST(DeviceCostModel, LaunchesACollectiveLikeAKernel) {
  ReferenceSystem system = dgx_a100();
  const Collective reduce = collective(CollectiveKind::kAllReduce, 1 << 20, {.ranks = 8});
  const Seconds without = model_of(system)->time_of(reduce);
  system.device.launch_overhead = Seconds(4e-6);
  EXPECT_NEAR(model_of(system)->time_of(reduce).value, without.value + 4e-6, 1e-15);
}

// 96 MB of gathered parameters over 8 ranks in 12 messages: a message of 8 MB is 8 tensors of 1 MB,
// copied by a kernel each. Reading and writing 1 MB takes 2e6 / (0.91 * 2.039 TB/s) = 1.08 us on
// the device, less than the 5 us of its launch, and 100 MB 108 us. The gradient norm is one
// message.
TEST(DeviceCostModel, CopiesListsOfTensorsRankByRank) {
  const auto extra = [](Collective shards) {
    shards.parameters.part = 0;
    Trainer trainer;
    trainer.host.per_kernel = Seconds(5e-6);
    trainer.overlap.messages_per_layer = 12;
    const Cluster cluster = cluster_of(dgx_a100(), 1);
    const Seconds flat = make_device_cost_model(cluster, trainer)->time_of(shards);
    trainer.overlap.copies_by_rank = true;
    return make_device_cost_model(cluster, trainer)->time_of(shards).value - flat.value;
  };
  const GroupShape node{.ranks = 8};
  EXPECT_NEAR(extra(collective(CollectiveKind::kAllGather, 96'000'000, node)), 12 * 8 * 5e-6,
              1e-12);
  EXPECT_NEAR(extra(collective(CollectiveKind::kReduceScatter, 9'600'000'000, node)),
              12 * 8 * 2e8 / (0.91 * 2.039e12), 1e-6);
  EXPECT_EQ(extra(collective(CollectiveKind::kAllReduce, 96'000'000, node)), 0);
}

}  // namespace
}  // namespace meshwright
