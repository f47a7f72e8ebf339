#include "core/plan/data_parallelism.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/formats/plan.hpp"
#include "core/plan/plan.hpp"
#include "tests/complaints.hpp"
#include "tests/core/tiny_models.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

TEST(GradientBucketText, ReadsBackWhatItWrites) {
  for (const char* text : {"none", "pytorch", "megatron", "25MiB", "1000001"}) {
    const auto buckets = buckets_from_text(text);
    ASSERT_TRUE(buckets) << text;
    EXPECT_EQ(to_text(*buckets), text);
  }
  EXPECT_EQ(buckets_from_text("2 GiB")->bytes, Bytes(std::int64_t{2} << 30));
  EXPECT_EQ(buckets_from_text("5KB")->bytes, Bytes(5'000));
  for (const char* text : {"", "0", "-1", "25 miles", "MiB", "99999999999999999999", "9999999GiB"})
    EXPECT_FALSE(buckets_from_text(text)) << text;
}

TEST(DataParallelism, KeepsAllItsFieldsInAPlanFile) {
  PlanFile file;
  file.plan = even_plan(strategy_of({.data = 8}, 2), 4, 1);
  EXPECT_THAT(to_json(file.plan.strategy), testing::Not(testing::HasSubstr("bucket")));  // as usual
  file.plan.strategy.zero = 3;
  file.plan.strategy.data_parallelism = {.kind = DataParallelKind::kRing,
                                         .algorithm = CollectiveAlgorithm::kRing,
                                         .buckets = {BucketRule::kBytes, Bytes(1'000'001)},
                                         .overlap_gather = true,
                                         .prefetch = 3,
                                         .reshard_after_forward = false,
                                         .shard_ranks = 4,
                                         .offload_optimizer = true,
                                         .servers = 2,
                                         .colocated_servers = true,
                                         .ring_order = RingOrder::kAlternating};
  EXPECT_EQ(plan_file_from_json(to_json(file), "test").plan, file.plan);
}

TEST(DataParallelism, NamesWordsThatItDoesNotKnow) {
  PlanFile file;
  file.plan = even_plan(strategy_of({}, 1), 4, 1);
  file.plan.strategy.data_parallelism.kind = DataParallelKind::kRing;
  const std::string text = replaced(to_json(file), "\"ring\"", "\"rung\"");
  const Diagnostic unknown =
      diagnostics_of([&] { plan_file_from_json(text, "x.plan.json"); }).at(0);
  EXPECT_EQ(unknown.where, "x.plan.json#/strategy/data_parallel");
  EXPECT_EQ(unknown.what, "invalid value 'rung'");
}

// ---- check_plan -----------------------------------------------------------------------------

/// dp 8 over four nodes of two devices, two micro-batches.
std::vector<std::string> found(const std::function<void(Strategy&)>& change) {
  Plan plan = plan_of(strategy_of({.data = 8}, 2), 4);
  change(plan.strategy);
  std::vector<std::string> texts;
  for (const Diagnostic& d : check_plan(plan, gpt({.blocks = 4}), cluster_of(4, 2)))
    texts.push_back(d.where + ": " + d.what);
  return texts;
}

TEST(CheckDataParallelism, AcceptsEveryLevelOfZero) {
  for (const int zero : {0, 1, 2, 3})
    EXPECT_THAT(found([zero](Strategy& s) { s.zero = zero; }), IsEmpty());
}

TEST(CheckDataParallelism, RefusesOptionsThatHaveNoMeaningTogether) {
  EXPECT_THAT(found([](Strategy& s) {
                s.zero = 3;
                s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(std::int64_t{25} << 20)};
              }),
              ElementsAre("--bucket: 25MiB cannot be combined with ZeRO 3"));
  EXPECT_THAT(found([](Strategy& s) { s.data_parallelism.overlap_gather = true; }),
              ElementsAre("--overlap-gather: ZeRO 0 does not gather parameters after the update"));
  EXPECT_THAT(found([](Strategy& s) { s.data_parallelism.shard_ranks = 2; }),
              ElementsAre("--shard-ranks: 2 has no effect with ZeRO 0"));
  EXPECT_THAT(
      found([](Strategy& s) {
        s.zero = 3;
        s.data_parallelism.shard_ranks = 3;
      }),
      ElementsAre("--shard-ranks: shard group size 3 does not divide the 8 ranks that share "
                  "parameters"));
  EXPECT_THAT(
      found([](Strategy& s) { s.data_parallelism.algorithm = CollectiveAlgorithm::kNvls; }),
      ElementsAre("--collective-algorithm: node 'test-node' does not support NVLS (no in-network "
                  "reduction)"));
  EXPECT_THAT(found([](Strategy& s) { s.data_parallelism.offload_optimizer = true; }),
              ElementsAre("--offload-optimizer: node 'test-node' has no host section in the "
                          "cluster file"));
}

TEST(CheckDataParallelism, CountsServersAndDevices) {
  const auto with = [](int data, int servers, bool colocated) {
    return found([=](Strategy& s) {
      s = strategy_of({.data = data}, 2);
      s.data_parallelism.kind = DataParallelKind::kParameterServer;
      s.data_parallelism.servers = servers;
      s.data_parallelism.colocated_servers = colocated;
    });
  };
  EXPECT_THAT(with(6, 2, false), IsEmpty());
  EXPECT_THAT(with(8, 8, true), IsEmpty());
  EXPECT_THAT(with(8, 2, false), ElementsAre("--servers: 8 workers and 2 servers, but cluster "
                                             "'test-cluster' has 8 devices"));
  // Plan files have no key for the default of one server.
  EXPECT_THAT(with(8, 1, false), ElementsAre("--dp: 8 workers and 1 servers, but cluster "
                                             "'test-cluster' has 8 devices"));
  EXPECT_THAT(with(4, 5, true),
              ElementsAre("--servers: 5 is out of range: expected 1 to 4 (one per worker)"));
}

TEST(CheckDataParallelism, KeepsOneProcessOnOneNode) {
  EXPECT_THAT(found([](Strategy& s) { s.data_parallelism.kind = DataParallelKind::kOneProcess; }),
              ElementsAre("--dp: a single process cannot use 8 devices: node 'test-node' has 2"));
}

// The local batch of a replica must be whole micro-batches.
TEST(CheckDataParallelism, WantsWholeMicrobatchesOnEveryReplica) {
  EXPECT_THAT(
      found([](Strategy& s) { s.global_batch = 24; }),
      ElementsAre("--global-batch: global batch 24 is not a multiple of micro-batch 2 x dp 8 "
                  "= 16"));
}

}  // namespace
}  // namespace meshwright
