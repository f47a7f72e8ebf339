#include "core/timeline/evaluation.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

/// Two classes of ranks in a step of 1000: the first represents three ranks, the second one.
Evaluation small_evaluation() {
  Evaluation e;
  e.step_time = Ticks(1000);
  RankBreakdown busy;
  busy.compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(500);
  busy.compute[static_cast<std::size_t>(KernelKind::kAttention)] = Ticks(100);
  busy.recompute = Ticks(100);
  busy.optimizer = Ticks(50);
  busy.exposed_communication[static_cast<std::size_t>(Axis::kTensor)] = Ticks(200);
  busy.bubble[static_cast<std::size_t>(BubbleCause::kWarmUp)] = Ticks(50);
  RankBreakdown idle;
  idle.compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(400);
  idle.bubble[static_cast<std::size_t>(BubbleCause::kDrain)] = Ticks(600);
  e.ranks = {busy, idle};
  e.multiplicity = {3, 1};
  MemoryAmounts small, large;
  small[MemoryClass::kWeights] = Bytes(70);
  large[MemoryClass::kWeights] = Bytes(60);
  large[MemoryClass::kActivations] = Bytes(30);
  e.peak_memory = {small, large};
  e.memory_capacity = Bytes(90);
  return e;
}

TEST(Evaluation, PartsOfARankAddUp) {
  const Evaluation e = small_evaluation();
  EXPECT_EQ(total(e.ranks[0]), Ticks(1000));
  EXPECT_EQ(total(e.ranks[1]), Ticks(1000));
}

TEST(Evaluation, SharesAreMeansOverRanksByMultiplicity) {
  const Evaluation e = small_evaluation();
  EXPECT_DOUBLE_EQ(compute_share(e), (3 * 0.75 + 0.4) / 4);
  EXPECT_DOUBLE_EQ(exposed_communication_share(e, Axis::kTensor), 3 * 0.2 / 4);
  EXPECT_DOUBLE_EQ(exposed_communication_share(e, Axis::kData), 0);
  EXPECT_DOUBLE_EQ(bubble_share(e, BubbleCause::kWarmUp), 3 * 0.05 / 4);
  EXPECT_DOUBLE_EQ(bubble_share(e, BubbleCause::kDrain), 0.6 / 4);
}

TEST(Evaluation, SharesOfOneStepAddUpToOne) {
  const Evaluation e = small_evaluation();
  double sum = compute_share(e);
  for (int a = 0; a < kAxisCount; ++a) sum += exposed_communication_share(e, static_cast<Axis>(a));
  for (int c = 0; c < kBubbleCauseCount; ++c) sum += bubble_share(e, static_cast<BubbleCause>(c));
  EXPECT_DOUBLE_EQ(sum, 1.0);
}

TEST(Evaluation, StepSharesNameEveryPartOnce) {
  const StepShares shares = step_shares(small_evaluation());
  EXPECT_DOUBLE_EQ(shares.compute[static_cast<std::size_t>(KernelKind::kGemm)],
                   (3 * 0.5 + 0.4) / 4);
  EXPECT_DOUBLE_EQ(shares.recompute, 3 * 0.1 / 4);
  EXPECT_DOUBLE_EQ(shares.optimizer, 3 * 0.05 / 4);
  double sum = shares.recompute + shares.optimizer;
  for (const double part : shares.compute) sum += part;
  for (const double part : shares.exposed_communication) sum += part;
  for (const double part : shares.bubble) sum += part;
  EXPECT_DOUBLE_EQ(sum, 1.0);
}

TEST(Evaluation, AnEmptyStepHasNoShares) {
  EXPECT_EQ(compute_share(Evaluation{}), 0);
  Evaluation e = small_evaluation();
  e.step_time = Ticks(0);
  EXPECT_EQ(bubble_share(e, BubbleCause::kDrain), 0);
}

TEST(Evaluation, MemoryFitsUpToTheLastByte) {
  Evaluation e = small_evaluation();
  EXPECT_EQ(peak_memory(e), Bytes(90));
  EXPECT_TRUE(fits_in_memory(e));
  e.memory_capacity = Bytes(89);
  EXPECT_FALSE(fits_in_memory(e));
}

// 70 of 75 bytes leave less than 90 of 200.
TEST(Evaluation, MemoryIsThatOfTheRankWithTheLeastHeadroom) {
  Evaluation e = small_evaluation();
  e.memory_capacities = {Bytes(75), Bytes(200)};
  EXPECT_EQ(fullest_rank(e), 0u);
  EXPECT_EQ(peak_memory(e), Bytes(70));
  EXPECT_EQ(memory_capacity_of(e, 1), Bytes(200));
  EXPECT_TRUE(fits_in_memory(e));
  e.memory_capacities = {Bytes(69), Bytes(200)};
  EXPECT_FALSE(fits_in_memory(e));
}

// B = 3 sequences of T = 5. Linear: 2 B T 4 8 = 960. Attention, every score: 2 B T T (4 + 4) for
// each of 2 heads = 2400. The norm is not a matrix multiplication. Backward is twice the forward.
TEST(ModelFlops, AreThreeForwardsOfEveryMatrixProduct) {
  ModelGraph model;
  model.operators.resize(3);
  model.operators[0].shape = Norm{.kind = NormKind::kRmsNorm, .width = 4};
  model.operators[1].shape = Linear{.in = 4, .out = 8};
  model.operators[2].shape =
      Attention{.heads = 2, .key_value_heads = 2, .key_size = 4, .value_size = 4, .window = {}};
  Strategy strategy;
  strategy.global_batch = 3;
  strategy.sequence_length = 5;
  strategy.recompute = {RecomputeKind::kFull, 0};  // recomputation does not count
  EXPECT_EQ(model_flops_per_step(model, strategy), Flops(3 * (960 + 2400)));
}

TEST(Evaluation, BubbleCausesHaveNames) {
  EXPECT_EQ(name_of(BubbleCause::kWarmUp), "warm-up");
  EXPECT_EQ(name_of(BubbleCause::kDrain), "drain");
  EXPECT_EQ(name_of(BubbleCause::kDependency), "dependency");
  EXPECT_EQ(name_of(BubbleCause::kImbalance), "imbalance");
}

}  // namespace
}  // namespace meshwright
