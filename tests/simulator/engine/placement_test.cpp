// Placement of layers and ranks: by hand, on heterogeneous nodes, in other rank orders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/lowering/lower.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/core/tiny_models.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace testing_models;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMillisecond = kTicksPerSecond / 1000;

/// A matrix product takes 1 ms, on nodes of the second type 2 ms; a message between nodes 1 ms;
/// everything else 0.
class ProductCosts : public CostModel {
 public:
  explicit ProductCosts(int kind = 0) : kind_(kind) {
    if (kind == 0) second_ = std::make_unique<ProductCosts>(1);
  }
  Seconds time_of(const Kernel& kernel) const override {
    return Seconds(kernel.kind == KernelKind::kGemm ? (kind_ == 1 ? 2e-3 : 1e-3) : 0.0);
  }
  Seconds time_of(const Collective&) const override { return Seconds(0.0); }
  TransferCost cost_of(const Transfer& transfer) const override {
    return {Seconds(0.0), Seconds(transfer.crosses_nodes ? 1e-3 : 0.0)};
  }
  const CostModel& on_nodes(std::int32_t node_kind) const override {
    return node_kind == 1 ? *second_ : *this;
  }
  std::string provenance() const override { return "test"; }

 private:
  int kind_;
  std::unique_ptr<ProductCosts> second_;
};

/// One product forward and two backward in every layer.
ModelGraph linears(int layers) {
  ModelGraphBuilder builder("linears", "mlp");
  testing_models::detail::BlockWriter w{builder, 8};
  TensorId x = w.activation(8);
  for (int i = 0; i < layers; ++i) {
    builder.begin_layer(LayerKind::kBlock);
    x = w.linear(x, 8, 8, LinearCut::kColumn);
    builder.end_layer(8);
  }
  return builder.finish(0, false);
}

Plan plan_by_hand(const std::string& schedule, int microbatches, std::vector<int> blocks,
                  std::vector<int> devices) {
  Plan plan;
  plan.strategy.degrees.pipeline = 1 + *std::max_element(devices.begin(), devices.end());
  plan.strategy.global_batch = microbatches;
  plan.strategy.sequence_length = 4;
  plan.strategy.schedule = schedule;
  plan.blocks_per_stage = std::move(blocks);
  plan.device_of_stage = std::move(devices);
  return plan;
}

/// Milliseconds; checks the graph, and that all ranks take as long as representatives.
std::int64_t step_of(const Plan& plan, const ModelGraph& model, const Cluster& cluster) {
  const TaskGraph graph = lower(plan, model, cluster);
  EXPECT_THAT(check_task_graph(graph), IsEmpty());
  const ProductCosts costs;
  const auto time = [&](const TaskGraph& g) {
    return makespan(simulate(g, price_works(g.parts, g.works, costs)));
  };
  const Ticks folded = time(graph);
  EXPECT_EQ(time(lower(plan, model, cluster, {.ranks = RankSet::kAll})), folded);
  return folded.value / kMillisecond;
}

// ---- PyTorch's to(device) ---------------------------------------------------------------------

// Four layers, two on each of two GPUs: 2 ms forward, 4 ms backward a stage, four micro-batches.
// One after another: 4 * (2 + 2 + 4 + 4) = 48 ms, as on one GPU: half of each is idle. GPipe:
// (m + p - 1) (F + B) = 5 * 6 = 30 ms, of which each is idle for 6.
TEST(TwoDevicesByHand, TakeTheTimesOfTheTextbook) {
  const ModelGraph model = linears(4);
  const Cluster cluster = cluster_of(1, 2);
  EXPECT_EQ(step_of(plan_by_hand("naive", 4, {4}, {0}), model, cluster), 48);
  EXPECT_EQ(step_of(plan_by_hand("naive", 4, {2, 2}, {0, 1}), model, cluster), 48);
  EXPECT_EQ(step_of(plan_by_hand("gpipe", 4, {2, 2}, {0, 1}), model, cluster), 30);
}

// Three layers and one: F 3 and 1, B 6 and 2. The first GPU is done with its forwards at 12, the
// second at 13; it ends its first backward at 15, and then the first GPU needs 4 * 6: 39 ms.
TEST(TwoDevicesByHand, WaitForTheFullerOne) {
  EXPECT_EQ(step_of(plan_by_hand("gpipe", 4, {3, 1}, {0, 1}), linears(4), cluster_of(1, 2)), 39);
}

// Layers 0 and 2 on GPU 0, 1 and 3 on GPU 1, two micro-batches. Forwards of GPU 0 end at 1, 2, 3, 4
// and of GPU 1 at 2, 3, 4, 5; backwards of GPU 1 at 7, 9, 11, 13 and of GPU 0 at 9, 11, 13, 15.
TEST(TwoDevicesByHand, MayHoldLayersThatAreNotNeighbors) {
  const ModelGraph model = linears(4);
  const Cluster cluster = cluster_of(1, 2);
  EXPECT_EQ(step_of(plan_by_hand("gpipe", 2, {1, 1, 1, 1}, {0, 1, 0, 1}), model, cluster), 15);
  EXPECT_EQ(step_of(plan_by_hand("naive", 2, {1, 1, 1, 1}, {0, 1, 0, 1}), model, cluster), 24);
  EXPECT_EQ(step_of(plan_by_hand("naive", 1, {1, 1, 2}, {1, 0, 1}), model, cluster), 12);
}

// Seven layers on two nodes of one GPU: 4 + 1 + 3 forward, 6 + 1 + 8 backward.
TEST(TwoDevicesByHand, MayStandInTwoNodes) {
  EXPECT_EQ(step_of(plan_by_hand("naive", 1, {4, 3}, {0, 1}), linears(7), cluster_of(2, 1)), 23);
}

// ---- heterogeneous nodes ----------------------------------------------------------------------

/// `fast` and then `slow` nodes; slow ones have other devices, of half the peak.
Cluster mixed_cluster(int fast, int slow, int devices_of_slow = 2) {
  Cluster cluster = cluster_of(fast, 2);
  DeviceModel device = cluster.devices.at("test-device");
  device.name = "slow-device";
  auto& peak = device.peak[static_cast<std::size_t>(Dtype::kBf16)];
  peak = 0.5 * *peak;
  cluster.devices["slow-device"] = device;
  NodeModel node = cluster.nodes.at("test-node");
  node.name = "slow-node";
  node.device = "slow-device";
  node.device_count = devices_of_slow;
  cluster.nodes["slow-node"] = node;
  cluster.groups.push_back({"slow-node", slow});
  return cluster;
}

// Two stages of two replicas: the first on the fast node, the second on the slow one, where a
// product takes 2 ms; 1F1B with three micro-batches, 1 ms for a message between the nodes.
// Four layers on the fast and two on the slow stage are both F 4, B 8:
//   first    F0 0-4, F1 4-8,  B0 18-26, F2 26-30, B1 30-38, B2 44-52
//   second   F0 5-9, B0 9-17, F1 17-21, B1 21-29, F2 31-35, B2 35-43
// Cut in the middle they are F 3, B 6 and F 6, B 12: the second works from 4 to 58 without a break,
// then 1 and 6: 65 ms.
TEST(MixedNodes, GiveStagesTheTimesOfTheirDevices) {
  const ModelGraph model = linears(6);
  const Cluster cluster = mixed_cluster(1, 1);
  Plan plan;
  plan.strategy = strategy_of({.data = 2, .pipeline = 2}, 3);
  plan.strategy.sequence_length = 4;
  plan.blocks_per_stage = {4, 2};
  EXPECT_EQ(step_of(plan, model, cluster), 52);
  plan.blocks_per_stage = {3, 3};
  EXPECT_EQ(step_of(plan, model, cluster), 65);
}

// Replicas on both kinds: every step waits for the slow ones. Six layers: 6 * 2 + 12 * 2 = 36 ms.
TEST(MixedNodes, MakeReplicasWaitForTheSlowOnes) {
  Plan plan;
  plan.strategy = strategy_of({.data = 4}, 1);
  plan.strategy.sequence_length = 4;
  plan.blocks_per_stage = {6};
  EXPECT_EQ(step_of(plan, linears(6), mixed_cluster(1, 1)), 36);
  plan.strategy = strategy_of({.data = 2}, 1);
  EXPECT_EQ(step_of(plan, linears(6), mixed_cluster(1, 1)), 18);
}

// Three stages of two replicas on two fast nodes and a slow one: gradients are reduced within one
// type of node, activations stay on the fast nodes or go to the slow one; all take part in the
// norm.
TEST(MixedNodes, PriceCommunicationOnTheNodesThatTakePart) {
  Plan plan;
  plan.strategy = strategy_of({.data = 2, .pipeline = 3}, 3);
  plan.strategy.sequence_length = 4;
  plan.blocks_per_stage = {2, 2, 2};
  std::map<TaskKind, std::set<std::int32_t>> kinds;
  for (const Work& work : lower(plan, linears(6), mixed_cluster(2, 1)).works)
    kinds[work.kind].insert(work.node_kind);
  EXPECT_THAT(kinds[TaskKind::kForward], ElementsAre(0, 1));
  EXPECT_THAT(kinds[TaskKind::kSend], ElementsAre(-1, 0));
  EXPECT_THAT(kinds[TaskKind::kReceive], ElementsAre(-1, 0));
  EXPECT_THAT(kinds[TaskKind::kCollective], ElementsAre(-1, 0, 1));
}

// Two devices, then one in each of two nodes: four ranks of data parallelism touch three nodes.
TEST(MixedNodes, MayHaveUnequalNumbersOfDevices) {
  const Cluster cluster = mixed_cluster(1, 2, 1);
  Plan plan;
  plan.strategy = strategy_of({.data = 4}, 1);
  plan.blocks_per_stage = {2};
  const TaskGraph graph = lower(plan, linears(2), cluster);
  for (const Work& work : graph.works)
    if (work.kind == TaskKind::kCollective) {
      EXPECT_EQ(work.collective.group.nodes, 3);
    }
  const auto costs = make_device_cost_model(cluster);
  for (const WorkPrice& price : price_works(graph.parts, graph.works, *costs))
    EXPECT_GE(price.duration, Ticks());
}

// ---- rank order -------------------------------------------------------------------------------

TEST(RankOrder, CostsMoreIfTensorRanksLieInDifferentNodes) {
  const Cluster cluster = testing::cluster_of(testing::dgx_a100(), 2);
  const ModelGraph model =
      gpt({.blocks = 4, .hidden = 4096, .heads = 32, .vocabulary = 2048, .positions = 2048});
  const auto costs = make_device_cost_model(cluster);
  const auto step = [&](const char* order, RankSet ranks) {
    Strategy s = strategy_of({.data = 2, .tensor = 8}, 16);
    s.sequence_length = 2048;
    s.model_parallelism.order = *rank_order_from_text(order);
    const TaskGraph graph = lower(plan_of(s, 4), model, cluster, {.ranks = ranks});
    EXPECT_THAT(check_task_graph(graph), IsEmpty()) << order;
    return makespan(simulate(graph, price_works(graph.parts, graph.works, *costs)));
  };
  const Ticks good = step("tp-cp-ep-dp-pp", RankSet::kRepresentatives);
  const Ticks bad = step("dp-cp-ep-tp-pp", RankSet::kRepresentatives);
  EXPECT_GT(bad.value, good.value * 6 / 5);
  EXPECT_EQ(step("tp-cp-ep-dp-pp", RankSet::kAll), good);
  EXPECT_EQ(step("dp-cp-ep-tp-pp", RankSet::kAll), bad);
}

}  // namespace
}  // namespace meshwright
