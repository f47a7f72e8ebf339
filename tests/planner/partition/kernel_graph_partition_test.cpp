#include "planner/partition/kernel_graph_partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.hpp"
#include "tests/complaints.hpp"
#include "tests/planner/partition/kernel_graphs.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMicrosecond = 1'000'000;  // in ticks

/// Transfers of 10 bytes take 12 us; 3 weights of 2 bytes and the output.
TEST(KernelGraphPartition, PricesInferenceByForwardKernels) {
  const PartitionProblem problem =
      price_inference(residual(), ByteCost(), {.count = 2, .memory = Bytes(99)}, "m.onnx");
  ASSERT_EQ(problem.nodes.size(), 3U);
  const PartitionNode& b = problem.nodes[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.accelerator_time, Ticks(40 * kMicrosecond));
  EXPECT_EQ(b.transfer_time, Ticks(12 * kMicrosecond));
  EXPECT_EQ(b.memory, Bytes(3 * 2 + 10));
  EXPECT_EQ(problem.edges.size(), 3U);
  EXPECT_EQ(problem.accelerators, 2);
  // a alone: 100 + 12; b and c: 40 + 30 + 12.
  const auto partition = partition_for_throughput(problem);
  ASSERT_TRUE(partition.has_value());
  EXPECT_EQ(partition->load, Ticks(112 * kMicrosecond));
}

/// bf16: 2 bytes of weight, 4 of gradient, 4 of fp32 weight and 8 of moments per parameter. b reads
/// 10 bytes and saves 50: it can be recomputed. c reads 30, a nothing.
TEST(KernelGraphPartition, PricesTrainingWithSavedTensorsAndRecomputation) {
  const auto priced = price_training(
      residual(), ByteCost(), {.count = 2, .memory = Bytes(1000), .microbatches = 4}, "m.onnx");
  const ReplicationNode& b = priced.problem.nodes[1];
  ASSERT_EQ(b.degrees.size(), 1U);
  EXPECT_EQ(b.degrees[0].parameters, Bytes(3 * 4));
  ASSERT_EQ(b.degrees[0].variants.size(), 2U);
  const NodeVariant& stored = b.degrees[0].variants[0];
  EXPECT_NEAR(stored.time.value, 100e-6, 1e-15);
  EXPECT_EQ(stored.memory_per_inflight, Bytes(50));
  EXPECT_EQ(stored.memory, Bytes(3 * 18));
  const NodeVariant& recomputed = b.degrees[0].variants[1];
  EXPECT_NEAR(recomputed.time.value, 140e-6, 1e-15);
  EXPECT_EQ(recomputed.memory_per_inflight, Bytes(10));
  EXPECT_EQ(recomputed.memory, Bytes(3 * 18 + 50));
  EXPECT_EQ(priced.problem.nodes[2].degrees[0].variants[1].memory_per_inflight, Bytes(30));
  EXPECT_NEAR(priced.problem.bandwidth.value, 1e6, 1e-3);
}

/// b and c on the second device read a's output, which is sent once: 200 us of kernels and 2 * 10
/// bytes there; 300 us and the same on the first. Replicas would reduce 36 kB of gradients.
TEST(KernelGraphPartition, SendsATensorOnceToAStageWithSeveralReaders) {
  KernelGraph graph = residual();
  for (KernelGraphNode& each : graph.nodes) each.parameters = 2999;
  const auto priced = price_training(
      graph, ByteCost(), {.count = 2, .memory = Bytes(200'000), .microbatches = 2}, "m.onnx");
  const auto partition = partition_with_replication(priced.problem);
  ASSERT_TRUE(partition.has_value());
  EXPECT_NEAR(partition->time.value, 320e-6, 1e-12);
  const TrainingPartition all = expand(graph, priced, *partition);
  ASSERT_EQ(all.partition.stages.size(), 2U);
  EXPECT_EQ(all.partition.stages[0].nodes, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(all.partition.stages[1].nodes, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(all.partition.devices, 2);
  EXPECT_EQ(all.problem.nodes[2].name, "c");
  EXPECT_EQ(all.problem.edges.size(), 3U);
}

/// 1,000 nodes in a chain, 320 groups: every node is in one stage, and stages are consecutive.
TEST(KernelGraphPartition, PutsEveryNodeOfALongGraphIntoOneStage) {
  KernelGraph graph;
  for (std::int32_t v = 0; v < 1000; ++v) {
    graph.nodes.push_back(node("n" + std::to_string(v), 100, 200));
    if (v > 0) graph.edges.push_back({v - 1, v, v - 1, Bytes(10)});
  }
  const auto priced = price_training(
      graph, ByteCost(), {.count = 4, .memory = Bytes(1'000'000), .microbatches = 4}, "m.onnx");
  const auto partition = partition_with_replication(priced.problem);
  ASSERT_TRUE(partition.has_value());
  std::int32_t next = 0;
  const ReplicationPartition all = expand(graph, priced, *partition).partition;
  for (const ReplicatedStage& stage : all.stages)
    for (const std::int32_t v : stage.nodes) EXPECT_EQ(v, next++);
  EXPECT_EQ(next, 1000);
  // Inside of groups nothing was searched: the bound is the work per device.
  EXPECT_NEAR(all.lower_bound.value, 1000 * 300e-6 / 4, 1e-9);
}

/// A view belongs to what it shows, unless it has another size.
TEST(KernelGraphPartition, KeepsViewsWithTheirSources) {
  KernelGraph graph = residual();
  KernelGraphNode view;
  view.output = Bytes(20);
  graph.nodes.push_back(view);
  view.output = Bytes(21);
  graph.nodes.push_back(view);
  graph.edges.push_back({1, 3, 1, Bytes(20)});
  graph.edges.push_back({1, 4, 1, Bytes(20)});
  const auto priced = price_training(
      graph, ByteCost(), {.count = 2, .memory = Bytes(1000), .microbatches = 4}, "m.onnx");
  EXPECT_EQ(priced.group, (std::vector<std::int32_t>{0, 1, 2, 1, 3}));
  EXPECT_TRUE(priced.is_exact);
}

/// a and b are part of the kernel of d, which comes after c: a -> b -> d, a -> d, c -> d.
TEST(KernelGraphPartition, KeepsFusedNodesTogether) {
  KernelGraph graph;
  for (const char* name : {"a", "b", "c", "d"}) graph.nodes.push_back(node(name, 10, 20));
  for (const std::size_t member : {0, 1}) {
    graph.nodes[member].fused_into = 3;
    graph.nodes[member].forward.clear();
    graph.nodes[member].backward.clear();
  }
  graph.edges = {
      {0, 1, 0, Bytes(9)}, {1, 3, 1, Bytes(9)}, {0, 3, 0, Bytes(9)}, {2, 3, 2, Bytes(9)}};
  const GraphDevices devices{.count = 2, .memory = Bytes(1000), .microbatches = 4};
  const auto priced = price_training(graph, ByteCost(), devices, "m.onnx");
  EXPECT_EQ(priced.group, (std::vector<std::int32_t>{1, 1, 0, 1}));
  const PartitionProblem inference = price_inference(graph, ByteCost(), devices, "m.onnx");
  EXPECT_EQ(inference.nodes[0].colocation, inference.nodes[3].colocation);
  EXPECT_NE(inference.nodes[2].colocation, inference.nodes[3].colocation);
  EXPECT_EQ(inference.nodes[0].memory, Bytes(2 * 3)) << "its output stays on chip";
}

/// Memory that the device reserves is not there for stages.
TEST(KernelGraphPartition, LeavesReservedMemory) {
  const GraphDevices devices{
      .count = 2, .memory = Bytes(1000), .reserved = Bytes(300), .microbatches = 4};
  EXPECT_EQ(price_training(residual(), ByteCost(), devices, "m.onnx").problem.device_memory,
            Bytes(700));
}

/// Chains with skip connections, whose order is that of the stages. Views with a kernel that takes
/// no time are nodes of their own: the best partition is no faster, and slower where a stage is
/// sent both a tensor and its view. Memory is not short: what Piper recomputes depends on what
/// nodes read.
TEST(KernelGraphPartition, LosesNothingByKeepingViewsWithTheirSources) {
  std::uint32_t state = 11;
  const auto below = [&](int n) {
    return static_cast<std::int32_t>(xorshift32(state) % static_cast<std::uint32_t>(n));
  };
  int merged = 0, equal = 0;
  for (int round = 0; round < 200; ++round) {
    KernelGraph with_views, apart;
    for (std::int32_t v = 0; v < 4 + below(5); ++v) {
      const bool is_view = v > 0 && below(3) == 0;
      KernelGraphNode each = node("n", 10 + below(90), 10 + below(90));
      each.output = Bytes(1 + below(40));
      each.parameters = below(500);
      if (is_view) each = {};
      const int sources = v == 0 ? 0 : is_view ? 1 : 1 + below(2);
      for (int i = 0; i < sources; ++i) {
        const std::int32_t source = i == 0 ? v - 1 : below(v);
        const Bytes bytes = with_views.nodes[static_cast<std::size_t>(source)].output;
        if (is_view) each.output = below(4) == 0 ? Bytes(1) : bytes;
        with_views.edges.push_back({source, v, source, bytes});
      }
      with_views.nodes.push_back(each);
      if (is_view) each.forward = {kernel(Phase::kForward, 0)};
      apart.nodes.push_back(each);
    }
    apart.edges = with_views.edges;
    const GraphDevices devices{
        .count = 1 + below(4), .memory = Bytes(1'000'000), .microbatches = 4};
    const auto priced = price_training(with_views, ByteCost(), devices, "m");
    const auto priced_apart = price_training(apart, ByteCost(), devices, "m");
    merged += priced.problem.nodes.size() < priced_apart.problem.nodes.size() ? 1 : 0;
    const auto best = partition_with_replication(priced.problem);
    const auto best_apart = partition_with_replication(priced_apart.problem);
    ASSERT_TRUE(best && best_apart);
    EXPECT_LE(best->time.value, best_apart->time.value + 1e-12) << round;
    equal += best_apart->time.value - best->time.value < 1e-12 ? 1 : 0;
  }
  EXPECT_GT(merged, 100);
  EXPECT_GT(equal, 150);
}

TEST(KernelGraphPartition, RefusesWorkOfDays) {
  KernelGraph graph = residual();
  graph.nodes[0].forward[0].memory_traffic = Bytes(std::int64_t{1} << 58);
  EXPECT_THAT(complaints_of([&] { price_inference(graph, ByteCost(), {}, "m.onnx"); }),
              HasSubstr("m.onnx: one micro-batch takes 2.88e+11 s"));
}

}  // namespace
}  // namespace meshwright
