#include "planner/partition/chain_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace meshwright {
namespace {

constexpr std::int64_t kMegabyte = 1 << 20;

struct ProblemShape {
  std::size_t operators = 4;  ///< of which layers of two repeat
  int devices_per_node = 2, nodes = 1;
  double memory_share = 1;  ///< of 300 MB
};

ChainProblem random_problem(std::uint32_t seed, const ProblemShape& shape) {
  std::mt19937 random(seed);
  const auto uniform = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  ChainProblem problem{.microbatches = {1, 2},
                       .tensor_degrees = 2,
                       .rates_in_node = {BytesPerSecond(200.0 * kMegabyte)},
                       .rates_between_nodes = {BytesPerSecond(50.0 * kMegabyte)},
                       .state_share = 8,
                       .devices_per_node = shape.devices_per_node,
                       .nodes = shape.nodes,
                       .global_batch = 8};
  for (std::size_t k = 0; k < 3; ++k) {
    ChainOperator op{.name = std::string(1, static_cast<char>('a' + k))};
    op.algorithms = k == 1 ? 2 : 1;
    op.can_be_recomputed = k != 0;
    op.begins_layer = k == 1;
    op.input = {ChainLayout::kReplicated, ChainLayout::kSplitHidden};
    op.output = {k == 1 ? ChainLayout::kSplitHidden : ChainLayout::kReplicated,
                 ChainLayout::kReplicated};
    for (const int microbatch : problem.microbatches)
      for (const int tensor : {1, 2})
        for (int algorithm = 0; algorithm < kChainAlgorithms; ++algorithm)
          op.costs.push_back({.is_measured = true,
                              .forward = Seconds(0.01 * uniform(5, 20) * microbatch / tensor),
                              .backward = Seconds(0.01 * uniform(10, 40) * microbatch / tensor),
                              .input = Bytes(microbatch * kMegabyte),
                              .output = Bytes(microbatch * kMegabyte),
                              .parameters = Bytes(uniform(1, 4) * kMegabyte / tensor),
                              .activations = Bytes(uniform(1, 30) * kMegabyte * microbatch),
                              .forward_workspace = Bytes(uniform(0, 9) * kMegabyte / tensor),
                              .backward_workspace = Bytes(uniform(0, 9) * kMegabyte / tensor)});
    problem.operators.push_back(std::move(op));
  }
  problem.chain = {0};
  while (problem.chain.size() < shape.operators)
    problem.chain.push_back(problem.chain.size() % 2 == 1 ? 1 : 2);
  problem.device_memory = Bytes(static_cast<std::int64_t>(shape.memory_share * 300 * kMegabyte));
  for (const std::int64_t megabytes : {1, 2, 4}) {
    problem.collectives[CollectiveKind::kAllGather][2][megabytes] = Seconds(0.02);
    problem.collectives[CollectiveKind::kAllToAll][2][megabytes] = Seconds(0.03);
  }
  return problem;
}

bool fits(const ChainProblem& problem, const ChainPlan& plan) {
  return std::all_of(plan.stages.begin(), plan.stages.end(), [&](const ChainStage& stage) {
    return stage.memory <= problem.device_memory;
  });
}

/// Tries all plans: cuts, devices, strategies of every operator.
Seconds fastest_of_all(const ChainProblem& problem) {
  Seconds best = Seconds::max();
  ChainPlan plan;
  const std::size_t size = problem.chain.size();
  std::function<void(std::size_t)> add_stage;
  const std::function<void(std::size_t)> choose = [&](std::size_t i) {
    const ChainStage stage = plan.stages.back();
    if (i == stage.end) {
      add_stage(stage.end);
      return;
    }
    const ChainOperator& op = problem.operators[static_cast<std::size_t>(problem.chain[i])];
    for (int tensor = 1; tensor <= stage.devices; tensor *= 2)
      for (int algorithm = 0; algorithm < op.algorithms; ++algorithm)
        for (const bool is_recomputed : {false, true}) {
          if (is_recomputed && !op.can_be_recomputed) continue;
          plan.strategies.push_back({tensor, stage.devices / tensor, algorithm, is_recomputed});
          choose(i + 1);
          plan.strategies.pop_back();
        }
  };
  add_stage = [&](std::size_t begin) {
    int used = 0;
    for (const ChainStage& stage : plan.stages) used += stage.devices;
    if (begin == size) {
      if (used != problem.devices()) return;
      price_chain(problem, plan);
      if (fits(problem, plan)) best = std::min(best, plan.time);
      return;
    }
    for (int devices = 1; devices <= problem.devices_per_node; devices *= 2) {
      if (used % problem.devices_per_node + devices > problem.devices_per_node) continue;
      if (used + devices > problem.devices()) continue;
      for (std::size_t end = begin + 1; end <= size; ++end) {
        plan.stages.push_back({.begin = begin, .end = end, .devices = devices});
        choose(begin);
        plan.stages.pop_back();
      }
    }
  };
  for (const int microbatch : {1, 2, 4}) {
    plan = {.microbatch = microbatch};
    add_stage(0);
  }
  return best;
}

void expect_consistent(const ChainProblem& problem, const ChainPartition& partition) {
  ChainPlan plan = partition.plan;
  price_chain(problem, plan);
  EXPECT_EQ(plan, partition.plan);
  EXPECT_TRUE(fits(problem, plan));
  EXPECT_LE(partition.lower_bound, partition.plan.time);
  EXPECT_EQ(plan.strategies.size(), problem.chain.size());
}

TEST(ChainPartition, IsTheFastestOfAllPlansWhereMemoryIsNoLimit) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const ChainProblem problem = random_problem(seed, {.operators = 5, .memory_share = 100});
    const auto partition = partition_chain(problem);
    ASSERT_TRUE(partition);
    expect_consistent(problem, *partition);
    const double best = fastest_of_all(problem).value;
    EXPECT_NEAR(partition->plan.time.value, best, 1e-9 * best);
    EXPECT_TRUE(partition->is_optimal());
  }
}

/// Where memory is tight, the bound is valid, and most plans are the best ones.
TEST(ChainPartition, IsBetweenItsBoundAndTheFastestOfAllPlansWhereMemoryIsTight) {
  int solved = 0, optimal = 0;
  for (std::uint32_t seed = 100; seed < 140; ++seed) {
    SCOPED_TRACE(seed);
    const ChainProblem problem =
        random_problem(seed, {.operators = 5, .memory_share = 0.3 + 0.02 * (seed % 20)});
    const auto partition = partition_chain(problem);
    const Seconds best = fastest_of_all(problem);
    if (!partition) continue;
    expect_consistent(problem, *partition);
    EXPECT_LE(partition->lower_bound.value, best.value * (1 + 1e-9));
    EXPECT_GE(partition->plan.time.value, best.value * (1 - 1e-9));
    EXPECT_LE(partition->plan.time.value, best.value * 1.2);
    ++solved;
    if (partition->plan.time.value <= best.value * (1 + 1e-9)) ++optimal;
  }
  EXPECT_GE(solved, 30);
  EXPECT_GE(optimal, solved * 8 / 10);
}

TEST(ChainPartition, StagesStayOnTheirNodes) {
  for (std::uint32_t seed = 200; seed < 206; ++seed) {
    SCOPED_TRACE(seed);
    const ChainProblem problem = random_problem(
        seed, {.operators = 4, .devices_per_node = 2, .nodes = 2, .memory_share = 100});
    const auto partition = partition_chain(problem);
    ASSERT_TRUE(partition);
    expect_consistent(problem, *partition);
    const double best = fastest_of_all(problem).value;
    EXPECT_NEAR(partition->plan.time.value, best, 1e-9 * best);
  }
}

/// Long chains have fewer cuts, and the bound of their work.
TEST(ChainPartition, OfManyLayersIsFoundWithFewCuts) {
  const ChainProblem problem = random_problem(
      7, {.operators = 2001, .devices_per_node = 2, .nodes = 2, .memory_share = 1000});
  const auto partition = partition_chain(problem);
  ASSERT_TRUE(partition);
  expect_consistent(problem, *partition);
  EXPECT_LE(partition->plan.time.value, partition->lower_bound.value * 2);
}

TEST(ChainPartition, IsAbsentIfNothingFits) {
  EXPECT_FALSE(partition_chain(random_problem(1, {.memory_share = 0.01})));
}

}  // namespace
}  // namespace meshwright
