#include "cli/flags/strategy_flags.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace meshwright {
namespace {

StrategyFlags flags_with_batch() {
  StrategyFlags flags;
  flags.global_batch = 64;
  flags.sequence_length = 1024;
  return flags;
}

FixedChoices choices_of(const std::string& line) {
  FixedChoices choices;
  CLI::App app;
  add_choice_flags(app, choices);
  app.parse(line);
  return choices;
}

// 64 devices, tp 4 x pp 2 x cp 2 = 16 of them in one replica: 64 / 16 = 4 replicas.
TEST(StrategyFlags, DataParallelismTakesTheDevicesThatAreLeft) {
  StrategyFlags flags = flags_with_batch();
  flags.choices.tensor = 4;
  flags.choices.pipeline = 2;
  flags.choices.context = 2;
  EXPECT_EQ(to_strategy(flags, 64).degrees.data, 4);
}

TEST(StrategyFlags, WithoutADeviceCountDataParallelismIsWhatIsSaid) {
  StrategyFlags flags = flags_with_batch();
  EXPECT_EQ(to_strategy(flags, std::nullopt).degrees.data, 1);
  flags.choices.data = 8;
  EXPECT_EQ(to_strategy(flags, std::nullopt).degrees.data, 8);
}

TEST(StrategyFlags, RefuseDegreesThatDoNotMultiplyToTheDevices) {
  StrategyFlags flags = flags_with_batch();
  flags.choices.tensor = 8;
  EXPECT_THROW(to_strategy(flags, 12), UsageError);
  flags.choices.data = 3;
  EXPECT_THROW(to_strategy(flags, 16), UsageError);
  flags.choices.data = 2;
  EXPECT_EQ(rank_count(to_strategy(flags, 16).degrees), 16);
}

TEST(StrategyFlags, SeveralChunksMeanTheInterleavedScheduleUnlessAnotherIsNamed) {
  StrategyFlags flags = flags_with_batch();
  EXPECT_EQ(to_strategy(flags, 1).schedule, "1f1b");
  flags.choices.chunks = 2;
  EXPECT_EQ(to_strategy(flags, 1).schedule, "interleaved-1f1b");
  flags.choices.schedule = "breadth-first";
  EXPECT_EQ(to_strategy(flags, 1).schedule, "breadth-first");
}

TEST(StrategyFlags, PassOnWhatIsSaidOfTheDataAxis) {
  const FixedChoices choices = choices_of(
      "--zero 3 --data-parallel ring --collective-algorithm ring --bucket 25MiB "
      "--overlap-gather --fsdp-prefetch 2 --fsdp-no-reshard --shard-ranks 4 "
      "--offload-optimizer --servers 3 --colocated-servers --ring-order alternating");
  EXPECT_EQ(choices.zero, 3);
  const DataParallelism expected{.kind = DataParallelKind::kRing,
                                 .algorithm = CollectiveAlgorithm::kRing,
                                 .buckets = {BucketRule::kBytes, Bytes(std::int64_t{25} << 20)},
                                 .overlap_gather = true,
                                 .prefetch = 2,
                                 .reshard_after_forward = false,
                                 .shard_ranks = 4,
                                 .offload_optimizer = true,
                                 .servers = 3,
                                 .colocated_servers = true,
                                 .ring_order = RingOrder::kAlternating};
  EXPECT_EQ(strategy_of(choices).data_parallelism, expected);
  EXPECT_THROW(choices_of("--bucket many"), UsageError);
  EXPECT_THROW(choices_of("--data-parallel rung"), UsageError);
}

TEST(StrategyFlags, BatchAndSequenceHaveNoDefault) {
  StrategyFlags flags;
  EXPECT_THROW(to_strategy(flags, 1), UsageError);
  flags.global_batch = 8;
  EXPECT_THROW(to_strategy(flags, 1), UsageError);
}

TEST(StrategyFlags, KnowWhetherAnyWasGiven) {
  EXPECT_FALSE(is_any_given({}));
  StrategyFlags flags;
  flags.choices.sequence_parallel = false;
  EXPECT_TRUE(is_any_given(flags));
  EXPECT_TRUE(is_any_given(flags_with_batch()));
}

TEST(StrategyFlags, PassOnWhatIsSaidOfTheModelAxes) {
  const FixedChoices choices = choices_of(
      "--tp-comm-overlap --context-algorithm ring --expert-capacity 1.25 --expert-imbalance 1.5 "
      "--expert-fp8-dispatch --expert-node-limit 4 --expert-overlap --rank-order dp-cp-ep-tp-pp");
  ModelParallelism expected;
  expected.tensor_overlap = true;
  expected.context = ContextAlgorithm::kRing;
  expected.routing = {
      .capacity = 1.25, .imbalance = 1.5, .fp8_dispatch = true, .node_limit = 4, .overlap = true};
  expected.order = *rank_order_from_text("dp-cp-ep-tp-pp");
  EXPECT_EQ(strategy_of(choices).model_parallelism, expected);
  StrategyFlags flags = flags_with_batch();
  flags.choices = choices;
  EXPECT_EQ(to_strategy(flags, 1).model_parallelism, expected);
}

TEST(StrategyFlags, PassOnThePrecision) {
  const FixedChoices choices = choices_of(
      "--dtype fp8 --fp8-recipe mxfp8 --fp8-param-gather --bf16-end-layers 1 --grad-dtype bf16");
  const Precision expected{.gradients = Dtype::kBf16,
                           .fp8_recipe = Fp8Recipe::kMxfp8,
                           .fp8_parameters = true,
                           .wide_blocks = 1};
  StrategyFlags flags = flags_with_batch();
  flags.choices = choices;
  EXPECT_EQ(to_strategy(flags, 1).precision, expected);
}

TEST(StrategyFlags, TakeAsManyPipelineRanksAsDevicesWereNamed) {
  StrategyFlags flags = flags_with_batch();
  CLI::App app;
  add_placement_flags(app, flags);
  app.parse("--blocks-per-stage 3,1,2 --stage-devices 0,2,1");
  EXPECT_EQ(flags.blocks_per_stage, (std::vector<int>{3, 1, 2}));
  EXPECT_TRUE(is_any_given(flags));
  EXPECT_EQ(to_strategy(flags, std::nullopt).degrees.pipeline, 3);
  EXPECT_THROW(app.parse("--stage-devices 0,,1"), UsageError);
  EXPECT_THROW(app.parse("--stage-devices 0,one"), UsageError);
}

}  // namespace
}  // namespace meshwright
