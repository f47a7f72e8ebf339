#include "cli/strategy_flags.hpp"

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
  FixedChoices choices;
  CLI::App app;
  add_choice_flags(app, choices);
  app.parse(
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
  EXPECT_EQ(choices.data_parallelism, expected);
  EXPECT_THROW(app.parse("--bucket many"), UsageError);
  EXPECT_THROW(app.parse("--data-parallel rung"), UsageError);
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

}  // namespace
}  // namespace meshwright
