#include "planner/partition/shard_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/models/onnx/onnx_file.hpp"
#include "tests/planner/partition/kernel_graphs.hpp"

namespace meshwright {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Microseconds: a kernel one per byte and per 1000 FLOPs, a collective `per_byte` per byte of the
/// buffer, an all-reduce twice that.
class LayoutCost final : public CostModel {
 public:
  explicit LayoutCost(double per_byte, bool overlaps = false)
      : per_byte_(per_byte), overlaps_(overlaps) {}
  Seconds time_of(const Kernel& kernel) const override {
    return Seconds(1e-6 * static_cast<double>(kernel.memory_traffic.value) +
                   1e-9 * kernel.flops.value);
  }
  Seconds time_of(const Collective& collective) const override {
    const double factor = collective.kind == CollectiveKind::kAllReduce ? 2 : 1;
    return Seconds(1e-6 * per_byte_ * factor * static_cast<double>(collective.bytes.value));
  }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  TrainerMemory memory() const override {
    TrainerMemory memory;
    memory.overlaps_gradient_reduction = overlaps_;
    return memory;
  }
  std::string provenance() const override { return "layouts"; }

 private:
  double per_byte_;
  bool overlaps_;
};

Seconds time_of_steps(const std::vector<Step>& steps, const CostModel& cost) {
  Ticks sum;
  for (const Ticks step : price_steps({.name = {}, .steps = steps}, cost)) sum += step;
  return to_seconds(sum);
}

Seconds time_of_graph(const KernelGraph& graph, const CostModel& cost) {
  Seconds sum;
  for (const KernelGraphNode& node : graph.nodes)
    sum += time_of_steps(forward_steps(node), cost) + time_of_steps(backward_steps(node), cost);
  return sum;
}

std::vector<CollectiveKind> kinds_of(const std::vector<Collective>& collectives) {
  std::vector<CollectiveKind> kinds;
  for (const Collective& each : collectives) kinds.push_back(each.kind);
  return kinds;
}

/// A block of Megatron-LM without attention: norm, columns, GELU, rows, residual. 128 tokens of
/// width 64.
OnnxFile block() {
  OnnxFile file;
  file.input("x", {1, 128, 64})
      .weight("scale", {64})
      .weight("w1", {64, 256})
      .weight("w2", {256, 64})
      .weight("last", {64})
      .node({"Mul", {"x", "last"}, {"start"}})
      .node({"LayerNormalization", {"start", "scale"}, {"n"}})
      .node({"MatMul", {"n", "w1"}, {"h"}})
      .node({"Gelu", {"h"}, {"g"}})
      .node({"MatMul", {"g", "w2"}, {"y"}})
      .node({"Add", {"y", "start"}, {"sum"}})
      .output("sum");
  return file;
}

/// Where communication is cheap, the parts of the block are as in Megatron-LM with sequence
/// parallelism: an all-gather before the first product, a reduce-scatter after the second one.
TEST(ShardGraph, FindSequenceParallelism) {
  const KernelGraph graph = block().read();
  const ShardedGraph sharded = shard_graph(graph, LayoutCost(0.02), {.group = {2, 4}});
  EXPECT_TRUE(sharded.is_optimal);
  EXPECT_THAT(placements_of(graph, sharded.sharding),
              ElementsAre("Shard(1)", "Shard(1)", "Shard(2)", "Shard(2)", "Partial", ""));
  const auto& nodes = sharded.graph.nodes;
  EXPECT_THAT(kinds_of(nodes[2].forward_collectives), ElementsAre(CollectiveKind::kAllGather));
  EXPECT_THAT(kinds_of(nodes[2].backward_collectives),
              ElementsAre(CollectiveKind::kAllGather, CollectiveKind::kReduceScatter));
  EXPECT_THAT(kinds_of(nodes[5].forward_collectives), ElementsAre(CollectiveKind::kReduceScatter));
  EXPECT_THAT(kinds_of(nodes[5].backward_collectives), ElementsAre(CollectiveKind::kAllGather));
  constexpr std::int64_t kActivation = 128 * 64 * 4;
  EXPECT_EQ(nodes[2].forward_collectives[0].bytes, Bytes(kActivation));
  EXPECT_EQ(nodes[2].forward_collectives[0].group, (GroupShape{2, 1, 4}));
  EXPECT_EQ(nodes[2].parameters, 64 * 256 / 2);
  EXPECT_EQ(nodes[2].forward[0].n, 128);
  EXPECT_EQ(nodes[4].forward[0].k, 128);
  constexpr std::int64_t kStatistics = 128 * 2 * 4;
  EXPECT_EQ(nodes[1].saved, Bytes((kActivation + kStatistics) / 2));
  // The weights of the norm are on both devices, and their gradients are sums.
  EXPECT_EQ(nodes[1].parameters, 64);
  EXPECT_EQ(nodes[1].summed_parameters, 64);
  EXPECT_EQ(nodes[2].summed_parameters, 0);
}

/// The left operand's gradient [rows, depth] has the columns as depth, the right one's [depth,
/// columns] the rows.
TEST(ShardGraph, DivideGradientsOfProducts) {
  const KernelGraph graph = block().read();
  const ShardedGraph sharded = shard_graph(graph, LayoutCost(1e-3), {.group = {4}});
  const auto sizes = [](const Kernel& kernel) {
    return std::vector<std::int64_t>{kernel.m, kernel.n, kernel.k};
  };
  const KernelGraphNode &columns = sharded.graph.nodes[2], &rows = sharded.graph.nodes[4];
  EXPECT_THAT(sizes(columns.forward[0]), ElementsAre(128, 64, 64));
  EXPECT_THAT(sizes(columns.backward[0]), ElementsAre(128, 64, 64));
  EXPECT_THAT(sizes(columns.backward[1]), ElementsAre(64, 64, 128));
  EXPECT_THAT(sizes(rows.forward[0]), ElementsAre(128, 64, 64));
  EXPECT_THAT(sizes(rows.backward[0]), ElementsAre(128, 64, 64));
  EXPECT_THAT(sizes(rows.backward[1]), ElementsAre(64, 64, 128));
  EXPECT_EQ(columns.forward[0].flops, Flops(2.0 * 128 * 64 * 64));
  EXPECT_EQ(columns.forward[0].memory_traffic, Bytes((128 * 64 + 64 * 64 + 128 * 64) * 4));
}

TEST(ShardGraph, ShardNothingIfCommunicationIsSlow) {
  const KernelGraph graph = block().read();
  const ShardedGraph sharded = shard_graph(graph, LayoutCost(1e6), {.group = {2}});
  EXPECT_THAT(sharded.sharding, Each(kReplicated));
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    EXPECT_EQ(sharded.graph.nodes[v].forward, graph.nodes[v].forward);
    EXPECT_THAT(sharded.graph.nodes[v].forward_collectives, IsEmpty());
  }
  EXPECT_EQ(sharded.graph.edges, graph.edges);
}

TEST(ShardGraph, DivideParametersIfAsked) {
  const KernelGraph graph = block().read();
  const ShardedGraph sharded =
      shard_graph(graph, LayoutCost(1e6), {.group = {2}, .shards_parameters = true});
  EXPECT_EQ(sharded.graph.nodes[2].parameters, 64 * 256 / 2);
  EXPECT_EQ(sharded.graph.nodes[4].parameters, 64 * 256 / 2);
}

/// As in Megatron-LM, the reduction of a product's input gradient runs beside the gradient of its
/// weights.
TEST(ShardGraph, HideReductionsBehindWeightGradients) {
  const KernelGraph graph = block().read();
  const LayoutCost cost(1e-3, /*overlaps=*/true);
  const ShardedGraph sharded = shard_graph(graph, cost, {.group = {2}});
  const KernelGraphNode& node = sharded.graph.nodes[2];
  ASSERT_EQ(node.backward_collectives.size(), 2U);
  EXPECT_EQ(node.backward_collectives[0].overlap.kernels, -1);
  EXPECT_EQ(node.backward_collectives[1].overlap.kernels, 1);
  Seconds kernels;
  for (const Kernel& kernel : node.backward) kernels += cost.time_of(kernel);
  EXPECT_NEAR(time_of_steps(backward_steps(node), cost).value, kernels.value, 1e-10);
}

/// The product and its bias are one kernel, of the sum: what the product reads is changed there.
TEST(ShardGraph, ChangesLayoutsNextToFusedKernels) {
  OnnxFile file;
  file.input("x", {128, 64})
      .weight("w", {64, 64})
      .weight("b", {64})
      .weight("scale", {64})
      .node({"LayerNormalization", {"x", "scale"}, {"n"}})
      .node({"MatMul", {"n", "w"}, {"y"}})
      .node({"Add", {"y", "b"}, {"z"}})
      .output("z");
  const KernelGraph graph = file.read();
  const LayoutCost cost(1e-3, /*overlaps=*/true);
  const ShardedGraph sharded = shard_graph(graph, cost, {.group = {2}});
  const auto& nodes = sharded.graph.nodes;
  EXPECT_THAT(nodes[1].forward_collectives, IsEmpty());
  EXPECT_THAT(kinds_of(nodes[2].forward_collectives), ElementsAre(CollectiveKind::kAllGather));
  EXPECT_EQ(nodes[2].parameters, 32);
  EXPECT_GT(time_of_graph(sharded.graph, cost), Seconds());
}

/// 10 heads on 4 devices: one of them would have 3, 20 % more than its share. 101 classes may be
/// divided: 26 instead of 25.25.
TEST(ShardGraph, KeepPartsAboutEqual) {
  OnnxFile file;
  file.input("x", {1, 64})
      .weight("w", {64, 10})
      .weight("v", {10, 101})
      .node({"MatMul", {"x", "w"}, {"y"}})
      .node({"MatMul", {"y", "v"}, {"z"}})
      .output("z");
  const KernelGraph graph = file.read();
  const ShardedGraph sharded = shard_graph(graph, LayoutCost(1e-9), {.group = {4}});
  EXPECT_EQ(sharded.graph.nodes[0].forward[0].n, 10);
  EXPECT_EQ(sharded.graph.nodes[1].forward[0].n, 26);
}

/// The choice is the best one: all choices tried, each with the time of its own graph. Graphs
/// without a tensor that two units read in the same new layout, which counts twice in the choice.
TEST(ShardGraph, EqualBruteForce) {
  std::uint32_t state = 11;
  const auto below = [&](std::uint32_t n) { return xorshift32(state) % n; };
  int sharded_units = 0;
  for (int trial = 0; trial < 60; ++trial) {
    OnnxFile file;
    file.input("x0", {4, 8});
    constexpr int kNodes = 5;
    for (int v = 0; v < kNodes; ++v) {
      const std::string in = "x" + std::to_string(v), out = "x" + std::to_string(v + 1);
      const std::string matrix = "w" + std::to_string(v), vector = "b" + std::to_string(v);
      file.weight(matrix, {8, 8}).weight(vector, {8});
      switch (below(5)) {
        case 0:
        case 1:
          file.node({"MatMul", {in, matrix}, {out}});
          break;
        case 2:
          file.node({"LayerNormalization", {in, vector}, {out}});
          break;
        case 3:
          file.node({"Add", {in, vector}, {out}});
          break;
        default:
          file.node({"Relu", {in}, {out}});
          break;
      }
    }
    file.output("x5");
    const KernelGraph graph = file.read();
    const LayoutCost cost(0.01 * static_cast<double>(1 + below(60)), below(2) == 0);
    const ShardedGraph sharded = shard_graph(graph, cost, {.group = {2}, .microbatches = 1 << 20});
    EXPECT_TRUE(sharded.is_optimal);
    Seconds best(1e9);
    std::vector<std::int32_t> choice(graph.units.size(), kReplicated);
    for (bool is_done = false; !is_done;) {
      best =
          std::min(best, time_of_graph(apply_sharding(graph, cost, {.group = {2}}, choice), cost));
      std::size_t u = 0;
      while (u < choice.size() &&
             ++choice[u] == static_cast<std::int32_t>(graph.units[u].shardings.size()))
        choice[u++] = kReplicated;
      is_done = u == choice.size();
    }
    EXPECT_NEAR(time_of_graph(sharded.graph, cost).value, best.value, 1e-9 * best.value) << trial;
    for (const std::int32_t each : sharded.sharding) sharded_units += each != kReplicated ? 1 : 0;
  }
  EXPECT_GT(sharded_units, 60);
}

}  // namespace
}  // namespace meshwright
