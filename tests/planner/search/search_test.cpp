#include "planner/search/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <tuple>

#include "models/load/load.hpp"
#include "planner/search/memory_screen.hpp"
#include "tests/complaints.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

std::int64_t pruned(const SearchCertificate& certificate) {
  return std::accumulate(certificate.pruned.begin(), certificate.pruned.end(), std::int64_t{0});
}

/// Simulates every candidate with every number of recomputed blocks, without bounds or memory
/// checks.
std::optional<Ticks> fastest_of_all(const SmallJob& small) {
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  std::optional<Ticks> fastest;
  for (Candidate candidate : small.candidates()) {
    Recompute& recompute = candidate.recompute;
    const bool open = recompute.kind == RecomputeKind::kBlocks;
    const auto cut =
        costs.stage_cut(costs.layers(candidate.layout, recompute), candidate.pipeline, recompute);
    const int most = open ? *std::max_element(cut->begin(), cut->end()) - 1 : 0;
    for (int blocks = open ? 1 : 0; blocks <= most; ++blocks) {
      if (open) recompute.blocks = blocks;
      const Plan plan{strategy_of(candidate, small.goal, small.fixed), *cut};
      const Evaluation evaluation = small.evaluate(plan);
      if (fits_in_memory(evaluation) && (!fastest || evaluation.step_time < *fastest))
        fastest = evaluation.step_time;
    }
  }
  return fastest;
}

/// A dense model or one with experts; plenty of memory, or 60 % of the peak of the best plan.
class SmallSearch : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  static SmallJob small_job() {
    const auto [experts, tight] = GetParam();
    SmallJob roomy(experts ? small_expert_model() : small_dense_model(), kPlenty, kSmallGoal);
    if (!tight) return roomy;
    const Evaluation best = roomy.search({.top = 1, .threads = 1}).plans.front().evaluation;
    return {roomy.model, Bytes(peak_memory(best).value * 6 / 10), kSmallGoal};
  }
};
INSTANTIATE_TEST_SUITE_P(ModelsAndMemories, SmallSearch,
                         testing::Combine(testing::Bool(), testing::Bool()));

/// Parts of the space that are small enough to simulate all of it; every choice is free in one.
std::vector<FixedChoices> parts_of_the_space() {
  FixedChoices pipelines;
  pipelines.micro_batch = 1;
  pipelines.zero = 0;
  pipelines.buckets = GradientBuckets{};
  pipelines.context = 1;
  pipelines.sequence_parallel = false;
  pipelines.expert_tensor = 1;
  FixedChoices replications;
  replications.tensor = 1;
  replications.schedule = "1f1b";
  replications.micro_batch = 2;
  FixedChoices layouts;
  layouts.schedule = "1f1b";
  layouts.recompute = Recompute{};
  layouts.zero = 1;
  layouts.buckets = GradientBuckets{};
  layouts.shard_ranks = 0;
  for (FixedChoices* part : {&pipelines, &replications, &layouts}) part->offload_optimizer = false;
  return {pipelines, replications, layouts};
}

TEST_P(SmallSearch, FindsWhatSimulatingEverythingFinds) {
  SmallJob small = small_job();
  for (const FixedChoices& fixed : parts_of_the_space()) {
    small.fixed = fixed;
    const SearchResult result = small.search({.top = 3, .threads = 1});
    const std::optional<Ticks> fastest = fastest_of_all(small);
    ASSERT_EQ(result.plans.empty(), !fastest.has_value());
    EXPECT_TRUE(result.certificate.proved_optimal);
    if (fastest) {
      EXPECT_EQ(result.plans.front().evaluation.step_time, *fastest);
    }
    EXPECT_EQ(result.certificate.gap, 0);
  }
}

/// No candidate of the whole space, chosen at random, is faster and fits.
TEST_P(SmallSearch, IsNotBeatenByCandidatesAtRandom) {
  const SmallJob small = small_job();
  const Ticks best = small.search({.top = 1, .threads = 2}).plans.front().evaluation.step_time;
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  for (Candidate candidate : small.candidates(2000)) {
    if (candidate.recompute.kind == RecomputeKind::kBlocks) candidate.recompute.blocks = 1;
    const Evaluation evaluation = small.evaluate(costs.plan_of(candidate));
    if (fits_in_memory(evaluation)) {
      ASSERT_GE(evaluation.step_time, best);
    }
  }
}

TEST_P(SmallSearch, AccountsForEveryCandidate) {
  const SearchResult result = small_job().search({.top = 3, .threads = 1});
  EXPECT_EQ(result.certificate.candidates,
            pruned(result.certificate) + result.certificate.simulated);
  EXPECT_LT(result.certificate.simulated * 4, result.certificate.candidates);
  const bool tight = std::get<1>(GetParam());
  EXPECT_EQ(result.certificate.pruned[static_cast<std::size_t>(PruneReason::kMemory)] > 0, tight);
}

TEST_P(SmallSearch, ProposesOnlySoundPlansThatFitBestFirst) {
  const SmallJob small = small_job();
  const SearchResult result = small.search({.top = 10, .threads = 2});
  Ticks last;
  for (const RankedPlan& row : result.plans) {
    EXPECT_TRUE(check_plan(row.plan, small.model, small.cluster).empty());
    EXPECT_TRUE(fits_in_memory(row.evaluation));
    EXPECT_EQ(row.evaluation, small.evaluate(row.plan));
    EXPECT_GE(row.evaluation.step_time, last);
    EXPECT_FALSE(row.why.empty());
    last = row.evaluation.step_time;
  }
}

TEST_P(SmallSearch, DoesNotDependOnTheNumberOfThreads) {
  const SmallJob small = small_job();
  const SearchResult one = small.search({.top = 5, .threads = 1});
  for (const int threads : {2, 3}) {
    SCOPED_TRACE(threads);
    const SearchResult other = small.search({.top = 5, .threads = threads});
    EXPECT_EQ(one.certificate.pruned, other.certificate.pruned);
    EXPECT_EQ(one.certificate.simulated, other.certificate.simulated);
    ASSERT_EQ(one.plans.size(), other.plans.size());
    for (std::size_t i = 0; i < one.plans.size(); ++i) {
      EXPECT_EQ(one.plans[i].plan, other.plans[i].plan);
      EXPECT_EQ(one.plans[i].evaluation, other.plans[i].evaluation);
      EXPECT_EQ(one.plans[i].why, other.plans[i].why);
    }
  }
}

TEST(Search, ListsEverySplitOnce) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  std::set<std::tuple<int, int, int>> splits;
  const SearchResult result = small.search({.top = 6, .threads = 1});
  for (const RankedPlan& row : result.plans) {
    const ParallelDegrees& d = row.plan.strategy.degrees;
    EXPECT_TRUE(splits.emplace(d.tensor, d.pipeline, d.data).second);
  }
  EXPECT_EQ(splits.size(), 6u);
}

TEST(Search, KeepsFixedChoices) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.tensor = 2;
  small.fixed.pipeline = 2;
  small.fixed.schedule = "1f1b";
  small.fixed.recompute = Recompute{.kind = RecomputeKind::kFull, .blocks = 0};
  const SearchResult result = small.search({.top = 4, .threads = 1});
  ASSERT_EQ(result.plans.size(), 4u);  // one split: rows differ in their micro-batch instead
  for (const RankedPlan& row : result.plans) {
    EXPECT_EQ(row.plan.strategy.degrees.tensor, 2);
    EXPECT_EQ(row.plan.strategy.degrees.pipeline, 2);
    EXPECT_EQ(row.plan.strategy.schedule, "1f1b");
    EXPECT_EQ(row.plan.strategy.recompute.kind, RecomputeKind::kFull);
  }
}

TEST(Search, SaysWhatIsMissingWhenNothingFitsAndWhatWouldFit) {
  // The model's 0.103 G parameters need 18 bytes each (1.86 GB) on one device; 8 devices
  // share that down to 0.23 GB at best, so 0.2 GB is too little for 8 but enough for more.
  SmallJob small(small_dense_model(), Bytes(200'000'000), kSmallGoal);
  small.fixed.offload_optimizer = false;
  const SearchResult result = small.search({.top = 3, .threads = 1});
  EXPECT_TRUE(result.plans.empty());
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_EQ(result.infeasible->reason,
            "weights, gradients and optimizer state alone need 222 MiB per device, sharded as far "
            "as possible; the device has 191 MiB");
  ASSERT_TRUE(result.infeasible->nearest.has_value());
  EXPECT_TRUE(fits_in_memory(result.infeasible->nearest->evaluation));
  EXPECT_GT(rank_count(result.infeasible->nearest->plan.strategy.degrees), kSmallGoal.gpus);
}

// 18 bytes of state per parameter on 8 devices are 0.23 GB; logits and activations need more.
TEST(Search, NamesThePlanWithTheLowestPeakIfItsStateWouldFit) {
  SmallJob small(small_dense_model(), Bytes(235'000'000), kSmallGoal);
  small.fixed.offload_optimizer = false;
  const SearchResult result = small.search({.top = 3, .threads = 1});
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_THAT(result.infeasible->reason, HasSubstr("the plan with the lowest peak memory (TP"));
  EXPECT_THAT(result.infeasible->reason, HasSubstr("GiB on pipeline rank"));
}

TEST(Search, OffloadsOptimizerStateOnlyIfNothingFitsOtherwise) {
  // Of 18 bytes per parameter the optimizer state is 12: 0.2 GB on each of 8 devices hold the rest.
  SmallJob small(small_dense_model(), Bytes(200'000'000), kSmallGoal);
  small.fixed.schedule = "1f1b";
  small.fixed.context = 1;
  const SearchResult result = small.search({.top = 3, .threads = 1});
  ASSERT_FALSE(result.plans.empty());
  for (const RankedPlan& row : result.plans)
    EXPECT_TRUE(row.plan.strategy.data_parallelism.offload_optimizer);
  small.cluster = nodes_with_memory(kPlenty);
  for (const RankedPlan& row : small.search({.top = 3, .threads = 1}).plans)
    EXPECT_FALSE(row.plan.strategy.data_parallelism.offload_optimizer);
}

TEST(Search, ReportsTheLeanestPlanWhereNoClusterIsLargeEnough) {
  SmallJob small(small_dense_model(), Bytes(20'000'000), kSmallGoal);
  small.fixed.zero = 0;
  small.fixed.offload_optimizer = false;
  const SearchResult result = small.search({.top = 1, .threads = 1});
  ASSERT_TRUE(result.infeasible.has_value());
  ASSERT_TRUE(result.infeasible->nearest.has_value());
  EXPECT_FALSE(fits_in_memory(result.infeasible->nearest->evaluation));
}

TEST(Search, SaysWhyNoSplitIsPossible) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.tensor = 3;
  const SearchResult result = small.search();
  EXPECT_TRUE(result.plans.empty());
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_THAT(result.infeasible->reason, HasSubstr("no valid combination of parallel sizes"));
}

TEST(Search, RefusesGoalsBeyondTheCluster) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.goal.gpus = 1 << 24;
  small.goal.global_batch = 0;
  const auto found = diagnostics_of([&] { small.search(); });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].where, "--global-batch");
  EXPECT_EQ(found[0].what, "must be at least 1, got 0");
  EXPECT_EQ(found[1].where, "--gpus");
}

TEST(Search, StopsWhenCanceledAndSaysThatNothingIsProved) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  SearchOptions options{.top = 3, .threads = 1};
  options.canceled = [] { return true; };
  const SearchResult result = small.search(options);
  EXPECT_FALSE(result.certificate.proved_optimal);
  EXPECT_TRUE(result.plans.empty());
  EXPECT_EQ(result.certificate.gap, 1);
}

TEST(Search, GivesTheBestPlanSoFarWhenItIsOutOfTime) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  const Ticks best = small.search({.top = 1}).plans.front().evaluation.step_time;
  SearchOptions options{.top = 3, .threads = 1};
  options.is_out_of_time = [] { return true; };
  const SearchResult result = small.search(options);
  EXPECT_FALSE(result.certificate.proved_optimal);
  ASSERT_FALSE(result.plans.empty());
  const Ticks found = result.plans.front().evaluation.step_time;
  EXPECT_GE(ratio(best, found), 1 - result.certificate.gap - 1e-9);
}

// 74,000 layouts: a plan of a small part of the space is there before they are priced.
TEST(Search, HasAPlanEarlyInALargeSpace) {
  SmallJob large(model_from_config(find_model("qwen3-235b-a22b")), kPlenty, {256, 1024, 4096});
  ASSERT_GT(large.space().branches.size(), 50'000u);
  bool has_begun = false;  // with the whole space; the search of a small part reports no progress
  SearchOptions options{.top = 3, .threads = 2};
  options.progress = [&](std::int64_t, std::int64_t) { has_begun = true; };
  options.is_out_of_time = [&] { return has_begun; };
  const SearchResult result = large.search(options);
  ASSERT_EQ(result.plans.size(), 1u);
  EXPECT_TRUE(fits_in_memory(result.plans.front().evaluation));
  EXPECT_FALSE(result.certificate.proved_optimal);
  large.fixed.context = large.fixed.micro_batch = large.fixed.zero = 1;
  large.fixed.recompute = Recompute{};
  EXPECT_LT(result.plans.front().evaluation.step_time,
            large.search({.top = 1, .threads = 2}).plans.front().evaluation.step_time)
      << "the best plan of the small part is refined";
}

TEST(Search, FindsAPlanWithoutTime) {
  SmallJob large(model_from_config(find_model("qwen3-235b-a22b")), kPlenty, {256, 1024, 4096});
  SearchOptions options{.top = 3, .threads = 2};
  options.is_out_of_time = [] { return true; };
  const SearchResult result = large.search(options);
  ASSERT_FALSE(result.plans.empty());
  EXPECT_TRUE(fits_in_memory(result.plans.front().evaluation));
  EXPECT_FALSE(result.certificate.proved_optimal);
}

// GPipe has no such overlap; the end of a step is priced with it where it is the simplest schedule.
TEST(Search, OverlapsExpertCommunication) {
  SmallJob small(small_expert_model(), kPlenty, kSmallGoal);
  small.fixed.model_parallelism.routing.overlap = true;
  const SearchResult result = small.search({.top = 3, .threads = 1});
  ASSERT_FALSE(result.plans.empty());
  EXPECT_TRUE(result.certificate.proved_optimal);
  for (const RankedPlan& row : result.plans) {
    EXPECT_TRUE(row.plan.strategy.model_parallelism.routing.overlap);
    EXPECT_EQ(row.evaluation, small.evaluate(row.plan));
  }
}

TEST(Search, ComputesInWhatTheDeviceHas) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.cluster = cluster_from_toml(find_cluster("dgx-v100"));  // no bf16
  small.cost_model = make_device_cost_model(small.cluster);
  const SearchResult result = small.search({.top = 1, .threads = 1});
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans.front().plan.strategy.dtype, Dtype::kFp16);
}

TEST(CompletePlan, CutsLikeTheSearch) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  for (const RankedPlan& row : small.search({.top = 6, .threads = 1}).plans)
    EXPECT_EQ(complete_plan(row.plan.strategy, small.model, small.cluster, *small.cost_model),
              row.plan);
}

TEST(CompletePlan, ReportsWhatIsWrongWithAStrategy) {
  const SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  Strategy strategy;
  strategy.sequence_length = 512;
  strategy.degrees.pipeline = 1'000'000'000;
  strategy.degrees.tensor = 0;
  EXPECT_THROW(complete_plan(strategy, small.model, small.cluster, *small.cost_model), InputError);
}

}  // namespace
}  // namespace meshwright
