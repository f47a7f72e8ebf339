#include "planner/search/fixed_choices.hpp"

#include <gtest/gtest.h>

#include "core/schedule/schedule.hpp"

namespace meshwright {
namespace {

FixedChoices every_choice() {
  FixedChoices fixed;
  fixed.tensor = 2;
  fixed.pipeline = 4;
  fixed.micro_batch = 3;
  fixed.zero = 2;
  fixed.sequence_parallel = true;
  fixed.schedule = "gpipe";
  fixed.recompute = Recompute{.kind = RecomputeKind::kFull};
  fixed.dtype = Dtype::kFp8;
  fixed.attention = AttentionAlgorithm::kStandard;
  fixed.buckets = GradientBuckets{.rule = BucketRule::kPyTorch, .bytes = {}};
  fixed.overlap_gather = true;
  fixed.reshard_after_forward = false;
  fixed.offload_optimizer = true;
  fixed.tensor_overlap = true;
  fixed.prefetch = 5;
  fixed.shard_ranks = 8;
  fixed.context_algorithm = ContextAlgorithm::kRing;
  fixed.rank_order = RankOrder{};
  fixed.precision.fp8_parameters = true;
  return fixed;
}

TEST(FixedChoices, AreInTheStrategy) {
  const Strategy s = strategy_of(every_choice());
  EXPECT_EQ(s.degrees.tensor, 2);
  EXPECT_EQ(s.degrees.pipeline, 4);
  EXPECT_EQ(s.micro_batch, 3);
  EXPECT_EQ(s.zero, 2);
  EXPECT_TRUE(s.sequence_parallel);
  EXPECT_EQ(s.schedule, "gpipe");
  EXPECT_EQ(s.recompute.kind, RecomputeKind::kFull);
  EXPECT_EQ(s.dtype, Dtype::kFp8);
  EXPECT_EQ(s.attention, AttentionAlgorithm::kStandard);
  EXPECT_EQ(s.data_parallelism.buckets.rule, BucketRule::kPyTorch);
  EXPECT_TRUE(s.data_parallelism.overlap_gather);
  EXPECT_FALSE(s.data_parallelism.reshard_after_forward);
  EXPECT_TRUE(s.data_parallelism.offload_optimizer);
  EXPECT_EQ(s.data_parallelism.prefetch, 5);
  EXPECT_EQ(s.data_parallelism.shard_ranks, 8);
  EXPECT_TRUE(s.model_parallelism.tensor_overlap);
  EXPECT_EQ(s.model_parallelism.context, ContextAlgorithm::kRing);
  EXPECT_TRUE(s.precision.fp8_parameters);
}

TEST(FixedChoices, LeaveTheRestAtTheDefaults) {
  FixedChoices none;
  none.chunks = 2;
  Strategy expected;
  expected.degrees.chunks = 2;
  expected.schedule = default_schedule(2);
  EXPECT_EQ(strategy_of(none), expected);
}

TEST(FixedChoices, SmallestStrategyKeepsOnlyWhatOneRankComputesIn) {
  Strategy expected;
  expected.micro_batch = 1;
  expected.global_batch = expected.sequence_length = 1;
  expected.schedule = kDefaultSchedule;
  expected.dtype = Dtype::kFp8;
  expected.attention = AttentionAlgorithm::kStandard;
  expected.precision.fp8_parameters = true;
  EXPECT_EQ(smallest_strategy(every_choice()), expected);
}

TEST(FixedChoices, SwitchesOfTensorParallelismAreForPlansThatHaveIt) {
  FixedChoices fixed;
  fixed.sequence_parallel = true;
  Strategy s;
  EXPECT_TRUE(keeps_fixed_choices(s, fixed));
  s.degrees.tensor = 2;
  EXPECT_FALSE(keeps_fixed_choices(s, fixed));
  s.sequence_parallel = true;
  EXPECT_TRUE(keeps_fixed_choices(s, fixed));
  s.degrees.tensor = 1;
  EXPECT_FALSE(keeps_fixed_choices(s, fixed));
  fixed.tensor = 1;  // both were asked for
  EXPECT_TRUE(keeps_fixed_choices(s, fixed));
}

}  // namespace
}  // namespace meshwright
