#include "core/plan/strategy_text.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(OptionsText, IsEmptyForDefaults) { EXPECT_EQ(options_text(Strategy{}), ""); }

TEST(OptionsText, ListsWhatDiffersFromTheDefaults) {
  Strategy s;
  s.degrees.context = 2;
  s.zero = 3;
  s.data_parallelism.buckets = {.rule = BucketRule::kMegatron, .bytes = {}};
  s.data_parallelism.shard_ranks = 8;
  s.data_parallelism.prefetch = 2;
  s.data_parallelism.reshard_after_forward = false;
  s.model_parallelism.tensor_overlap = true;
  s.model_parallelism.context = ContextAlgorithm::kRing;
  s.layer_options = *layer_options_from_text("0-7:recompute=full");
  EXPECT_EQ(options_text(s),
            "buckets megatron, shards of 8 ranks, TP overlap, ring attention, prefetch 2, "
            "no reshard, layers 0-7:recompute=full");
}

// Resharding and prefetch exist under ZeRO 3 only, the algorithm with several context ranks.
TEST(OptionsText, OmitsWhatHasNoEffect) {
  Strategy s;
  s.zero = 1;
  s.data_parallelism.prefetch = 2;
  s.data_parallelism.reshard_after_forward = false;
  s.model_parallelism.context = ContextAlgorithm::kRing;
  EXPECT_EQ(options_text(s), "");
}

// Without a pipeline 1F1B runs one micro-batch after another; ZB-H1 delays weight gradients.
TEST(StrategyText, NamesTheScheduleOfAPipeline) {
  Strategy s;
  s.degrees.data = 4;
  EXPECT_EQ(strategy_text(s).find("DP4, micro-batch 1,"), 0U);
  s.schedule = "zb-h1";
  EXPECT_EQ(strategy_text(s).find("DP4, zb-h1, micro-batch 1,"), 0U);
  s.schedule = kDefaultSchedule;
  s.degrees.pipeline = 2;
  EXPECT_EQ(strategy_text(s).find("PP2 DP4, 1f1b, micro-batch 1,"), 0U);
}

TEST(SplitText, ListsSizesAboveOne) {
  Strategy s;
  EXPECT_EQ(split_text(s), "one device");
  s.degrees.tensor = 8;
  s.degrees.pipeline = 4;
  s.degrees.chunks = 3;
  s.sequence_parallel = true;
  EXPECT_EQ(split_text(s), "TP8 PP4x3 SP");
}

// Without a pipeline 1F1B is the order of every program. Others make gradients ready at other
// times.
TEST(ScheduleText, NamesTheScheduleWhereItMatters) {
  Strategy s;
  s.schedule = "1f1b";
  EXPECT_EQ(schedule_text(s), "-");
  s.degrees.pipeline = 2;
  EXPECT_EQ(schedule_text(s), "1f1b");
  s.schedule = "zb-h1";
  s.degrees.pipeline = 1;
  EXPECT_EQ(schedule_text(s), "zb-h1");
}

// tp 8 and dp 4; overlap of tensor-parallel communication and buckets.
TEST(FeatureCount, CountsAxesAndOptions) {
  Strategy s;
  EXPECT_EQ(feature_count(s), 0);
  s.degrees.tensor = 8;
  s.degrees.data = 4;
  s.zero = 1;
  EXPECT_EQ(feature_count(s), 2);
  s.model_parallelism.tensor_overlap = true;
  s.data_parallelism.buckets = {.rule = BucketRule::kPyTorch, .bytes = {}};
  EXPECT_EQ(feature_count(s), 4);
}

}  // namespace
}  // namespace meshwright
