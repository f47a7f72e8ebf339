#include "core/model/chain_problem.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace meshwright {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

ChainOperator operator_with(const ChainCosts& costs) {
  return {.name = "op", .costs = std::vector<ChainCosts>(2 * kChainAlgorithms, costs)};
}

/// Two equal operators, measured with one sample and tensor degrees of 1 and 2, all the same.
ChainProblem two_operators() {
  const ChainCosts costs{.is_measured = true,
                         .forward = Seconds(1),
                         .backward = Seconds(2),
                         .input = Bytes(8 * kMegabyte),
                         .output = Bytes(2 * kMegabyte),
                         .parameters = Bytes(100),
                         .activations = Bytes(1000),
                         .forward_workspace = Bytes(30),
                         .backward_workspace = Bytes(50)};
  const double megabyte = kMegabyte;
  return {.operators = {operator_with(costs)},
          .chain = {0, 0},
          .microbatches = {1},
          .tensor_degrees = 2,
          .rates_in_node = {BytesPerSecond(megabyte), BytesPerSecond(4 * megabyte)},
          .rates_between_nodes = {BytesPerSecond(megabyte / 2)},
          .state_share = 8,
          .devices_per_node = 2,
          .nodes = 1,
          .device_memory = Bytes(1 << 30),
          .global_batch = 10};
}

/// 8 MB have the second rate (half of 2^3 is 2^2), 2 MB the first.
TEST(ChainProblem, MessagesHaveTheRateOfHalfTheirPowerOfTwo) {
  const ChainProblem problem = two_operators();
  EXPECT_DOUBLE_EQ(transfer_time(problem.rates_in_node, Bytes(8 * kMegabyte)).value, 2);
  EXPECT_DOUBLE_EQ(transfer_time(problem.rates_in_node, Bytes(2 * kMegabyte)).value, 2);
  EXPECT_DOUBLE_EQ(transfer_time(problem.rates_in_node, Bytes(kMegabyte / 4)).value, 0.25);
  EXPECT_EQ(transfer_time(problem.rates_in_node, Bytes(0)).value, 0);
}

/// One stage: 2 x 3 s, 2 s for its input, and 4 s for its output, which leaves the node.
TEST(ChainProblem, AStepIsTheSlowestStageForAllMicrobatchesButOneAndAllStagesOnce) {
  const ChainProblem problem = two_operators();
  ChainPlan plan{.microbatch = 1,
                 .strategies = {{2, 1, 0, false}, {2, 1, 0, false}},
                 .stages = {{.begin = 0, .end = 2, .devices = 2}}};
  price_chain(problem, plan);
  EXPECT_DOUBLE_EQ(plan.stages[0].time.value, 6 + 2 + 4);
  EXPECT_DOUBLE_EQ(plan.time.value, 10 * 12);
  // 8 x 200, input and activations once, and max(30 + 50, 200) of workspace.
  EXPECT_EQ(plan.stages[0].memory.value, 1600 + 8 * kMegabyte + 2000 + 200);

  plan.strategies = {{1, 1, 0, false}, {1, 1, 0, true}};
  plan.stages = {{.begin = 0, .end = 1, .devices = 1}, {.begin = 1, .end = 2, .devices = 1}};
  price_chain(problem, plan);
  EXPECT_DOUBLE_EQ(plan.stages[0].time.value, 3 + 2 + 2);
  EXPECT_DOUBLE_EQ(plan.stages[1].time.value, 3 + 1 + 2 + 4);
  EXPECT_DOUBLE_EQ(plan.time.value, 9 * 10 + 17);
  // One stage is behind the first; its only operator has no workspace.
  EXPECT_EQ(plan.stages[0].memory.value, 800 + 2 * (8 * kMegabyte + 1000) + 100);
}

/// Of recomputed neighbors the first one keeps nothing; its activations are back at their backward.
TEST(ChainProblem, RecomputedOperatorsKeepNothingBetweenThem) {
  ChainProblem problem = two_operators();
  ChainPlan plan{.microbatch = 1,
                 .strategies = {{2, 1, 0, true}, {2, 1, 0, true}},
                 .stages = {{.begin = 0, .end = 2, .devices = 2}}};
  price_chain(problem, plan);
  EXPECT_DOUBLE_EQ(plan.stages[0].time.value, 6 + 2 + 2 + 4);
  EXPECT_EQ(plan.stages[0].memory.value, 1600 + 8 * kMegabyte + 1000 + 1000 + 200);
  problem.operators[0].begins_layer = true;  // what a layer reads is kept, and counts as a run
  price_chain(problem, plan);
  EXPECT_EQ(plan.stages[0].memory.value, 1600 + 8 * kMegabyte + 2000 + 1000 + 200);
}

TEST(ChainProblem, WhatWasNotMeasuredTakesForever) {
  const ChainProblem problem = two_operators();
  ChainPlan plan{.microbatch = 3,
                 .strategies = {{1, 2, 0, false}, {1, 2, 0, false}},
                 .stages = {{.begin = 0, .end = 2, .devices = 2}}};
  price_chain(problem, plan);
  EXPECT_TRUE(std::isinf(plan.time.value));
}

TEST(ChainProblem, LayoutsAreConvertedByMeasuredCollectives) {
  ChainProblem problem = two_operators();
  problem.collectives[CollectiveKind::kAllGather][2] = {{8, Seconds(0.5)}};
  problem.collectives[CollectiveKind::kAllToAll][2] = {{8, Seconds(0.25)}};
  const ChainStrategy split{.tensor = 2, .data = 1}, copies{.tensor = 1, .data = 2};
  const auto time = [&](ChainLayout from, const ChainStrategy& source, ChainLayout to,
                        const ChainStrategy& target, std::int64_t megabytes = 8) {
    return conversion_time(problem, from, source, to, target, Bytes(megabytes * kMegabyte)).value;
  };
  using enum ChainLayout;
  EXPECT_EQ(time(kReplicated, split, kReplicated, split), 0);
  EXPECT_EQ(time(kAny, split, kSplitHidden, copies), 0);
  EXPECT_EQ(time(kReplicated, split, kSplitHidden, split), 0.5);     // gather of the gradient
  EXPECT_EQ(time(kSplitHidden, split, kReplicated, split), 0.5);     // gather
  EXPECT_EQ(time(kReplicated, split, kReplicated, copies), 0.5);     // more data parallelism
  EXPECT_EQ(time(kSplitHidden, split, kSplitHidden, copies), 0.5);   // two all-to-alls
  EXPECT_EQ(time(kReplicated, split, kSplitHidden, split, 9), 0.5);  // as 8 MB
  EXPECT_TRUE(std::isinf(time(kReplicated, split, kSplitHidden, split, 7)));
  problem.collectives.clear();
  EXPECT_TRUE(std::isinf(time(kSplitHidden, split, kReplicated, split)));
}

}  // namespace
}  // namespace meshwright
