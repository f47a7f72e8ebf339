#include "tests/validation/plan_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/formats/plan.hpp"

namespace meshwright {
namespace {

using testing::Contains;
using testing::Not;

constexpr std::size_t kAll = 1'000'000;

Strategy base_strategy() {
  Strategy s;
  s.degrees = {.data = 4, .pipeline = 2, .tensor = 2};
  s.global_batch = 32;
  s.sequence_length = 512;
  return s;
}

std::set<std::string> texts(const std::vector<Strategy>& strategies) {
  std::set<std::string> texts;
  for (const Strategy& strategy : strategies) texts.insert(to_json(strategy, -1));
  return texts;
}

template <class Edit>
Strategy edited(const Edit& edit) {
  Strategy s = base_strategy();
  edit(s);
  return s;
}

TEST(PlanChanges, AreAllPairsOnceAndNeverThePlanItself) {
  const Strategy base = base_strategy();
  std::set<std::string> expected;
  for (const Strategy& once : changed_once(base)) {
    expected.insert(to_json(once, -1));
    expected.merge(texts(changed_once(once)));
  }
  expected.erase(to_json(base, -1));
  const ChangedStrategies changed = changed_at_most_twice(base, kAll);
  EXPECT_EQ(changed.left_out, 0u);
  EXPECT_EQ(changed.strategies.size(), expected.size());
  EXPECT_EQ(texts(changed.strategies), expected);
}

// Neither change is valid alone: 1f1b has one chunk, and zb-v has two.
TEST(PlanChanges, PairsIncludeChangesThatAreInvalidAlone) {
  const Strategy wave = edited([](Strategy& s) {
    s.schedule = "zb-v";
    s.degrees.chunks = 2;
  });
  EXPECT_THAT(changed_once(base_strategy()), Not(Contains(wave)));
  EXPECT_THAT(changed_at_most_twice(base_strategy(), kAll).strategies, Contains(wave));
}

TEST(PlanChanges, ChangeEverySearchedChoice) {
  const std::vector<Strategy> once = changed_once(base_strategy());
  const auto has = [&](const auto& edit) {
    return std::ranges::find(once, edited(edit)) != once.end();
  };
  EXPECT_TRUE(has([](Strategy& s) { s.degrees = {.data = 2, .pipeline = 2, .tensor = 4}; }));
  EXPECT_TRUE(has([](Strategy& s) { s.degrees.expert = 2; }));
  EXPECT_TRUE(has([](Strategy& s) { s.degrees.expert_tensor = 2; }));
  EXPECT_TRUE(has([](Strategy& s) { s.degrees.chunks = 2; }));
  EXPECT_TRUE(has([](Strategy& s) { s.sequence_parallel = true; }));
  EXPECT_TRUE(has([](Strategy& s) { s.micro_batch = 2; }));
  EXPECT_TRUE(has([](Strategy& s) { s.recompute.kind = RecomputeKind::kTorchSelective; }));
  EXPECT_TRUE(has([](Strategy& s) { s.recompute = {RecomputeKind::kBlocks, 1}; }));
  EXPECT_TRUE(
      has([](Strategy& s) { s.recompute = {.kind = RecomputeKind::kModules, .modules = 2}; }));
  EXPECT_TRUE(has([](Strategy& s) { s.zero = 3; }));
  EXPECT_TRUE(has([](Strategy& s) { s.data_parallelism.buckets.rule = BucketRule::kMegatron; }));
  EXPECT_TRUE(has([](Strategy& s) { s.data_parallelism.overlap_gather = true; }));
  EXPECT_TRUE(has([](Strategy& s) { s.data_parallelism.reshard_after_forward = false; }));
  EXPECT_TRUE(has([](Strategy& s) { s.data_parallelism.shard_ranks = 4; }));
  EXPECT_TRUE(has([](Strategy& s) { s.model_parallelism.tensor_overlap = true; }));
  EXPECT_TRUE(has([](Strategy& s) { s.model_parallelism.context = ContextAlgorithm::kRing; }));
}

TEST(PlanChanges, BeyondTheCapLeaveOutOnlyPairs) {
  const Strategy base = base_strategy();
  const std::size_t all = changed_at_most_twice(base, kAll).strategies.size();
  const std::set<std::string> once = texts(changed_once(base));
  const std::size_t most = once.size() + 10;
  const ChangedStrategies changed = changed_at_most_twice(base, most);
  EXPECT_EQ(changed.left_out, all - most);
  const std::set<std::string> kept = texts(changed.strategies);
  EXPECT_EQ(kept.size(), most);
  EXPECT_TRUE(std::ranges::includes(kept, once));
}

}  // namespace
}  // namespace meshwright
