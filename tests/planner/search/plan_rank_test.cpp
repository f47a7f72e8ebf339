/// Where plans stand in the spaces of small jobs.
#include "planner/search/plan_rank.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

SmallJob small_job() {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.dtype = Dtype::kBf16;
  return small;
}

PlanRank rank_in(const SmallJob& small, const Plan& plan, const PlanRankOptions& options = {}) {
  return rank_of(plan, small.evaluate(plan).step_time, small.job(), options);
}

TEST(PlanRank, NoPlanAtRandomIsFasterThanTheBest) {
  const SmallJob small = small_job();
  const Plan best = small.search({.top = 1, .threads = 1}).plans.front().plan;
  const PlanRank rank = rank_in(small, best);
  EXPECT_EQ(rank.outside, "");
  EXPECT_GE(rank.fitting, 200);
  EXPECT_EQ(rank.faster, 0);
}

// The shares of 400 draws and of all candidates differ by less than 4 standard deviations,
// 4 * sqrt(0.25 / 400) = 0.1. "Some blocks" stand for the fewest that fit, here one.
TEST(PlanRank, EstimatesTheShareOfFasterPlans) {
  SmallJob small = small_job();
  small.fixed.context = 1;
  small.fixed.buckets = GradientBuckets{};
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  std::vector<Ticks> times;
  std::vector<Plan> plans;
  for (Candidate candidate : small.candidates()) {
    if (candidate.recompute.kind == RecomputeKind::kBlocks) candidate.recompute.blocks = 1;
    plans.push_back(costs.plan_of(candidate));
    times.push_back(small.evaluate(plans.back()).step_time);
  }
  const auto middle =
      static_cast<std::size_t>(std::ranges::find(times, times[times.size() / 3]) - times.begin());
  const auto faster = std::ranges::count_if(
      times, [&](Ticks time) { return ratio(times[middle], time) > 1 + kFasterBy; });
  const PlanRank rank = rank_in(small, plans[middle], {.fitting = 400, .drawn = 100'000});
  EXPECT_NEAR(static_cast<double>(rank.faster) / rank.fitting,
              static_cast<double>(faster) / static_cast<double>(times.size()), 0.1);
}

TEST(PlanRank, NamesWhatTheSpaceDoesNotHave) {
  SmallJob small = small_job();
  const Plan best = small.search({.top = 1, .threads = 1}).plans.front().plan;
  const auto outside = [&](const auto& change) {
    Plan plan = best;
    plan.strategy.degrees = {.data = 4, .pipeline = 2};
    plan.strategy.micro_batch = 2;
    plan.strategy.schedule = "1f1b";
    change(plan.strategy);
    return rank_of(plan, Ticks(1), small.job(), {.fitting = 1, .drawn = 64}).outside;
  };
  EXPECT_EQ(outside([](Strategy&) {}), "");
  EXPECT_EQ(outside([](Strategy& s) { s.recompute = {RecomputeKind::kBlocks, 2}; }), "");
  EXPECT_EQ(outside([](Strategy& s) { s.micro_batch = 3; }), "PP2 DP4, micro-batch 3");
  EXPECT_EQ(outside([](Strategy& s) { s.schedule = "naive"; }), "naive with 1 chunks");
  // Without a pipeline all schedules of one chunk are the same.
  EXPECT_EQ(outside([](Strategy& s) {
              s.degrees = {.data = 8};
              s.schedule = "zb-h1";
            }),
            "");
  EXPECT_EQ(outside([](Strategy& s) {
              s.degrees = {.data = 8, .chunks = 2};
              s.schedule = "interleaved-1f1b";
            }),
            "interleaved-1f1b with 2 chunks");
  EXPECT_EQ(outside([](Strategy& s) { s.recompute = {RecomputeKind::kSelective}; }),
            "recompute selective");
  EXPECT_THAT(outside([](Strategy& s) {
                s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(1)};
              }),
              HasSubstr("with buckets 1"));
}

TEST(PlanRank, RandomCandidatesAreOfTheSpaceAndDependOnTheSeed) {
  constexpr int kCandidates = 100;
  const SmallJob small = small_job();
  const SearchSpace space = small.space();
  const auto strategies = [&](std::uint64_t seed) {
    std::vector<Strategy> drawn;
    for (const Candidate& candidate : random_candidates(space, kCandidates, seed))
      drawn.push_back(strategy_of(candidate, small.goal, small.fixed));
    return drawn;
  };
  const std::vector<Strategy> one = strategies(1);
  EXPECT_EQ(one.size(), std::size_t{kCandidates});
  for (const Strategy& strategy : one) EXPECT_EQ(choice_outside(strategy, space, small.fixed), "");
  EXPECT_EQ(one, strategies(1));
  EXPECT_NE(one, strategies(2));
}

TEST(PlanRank, DoesNotDependOnTheNumberOfThreads) {
  const SmallJob small = small_job();
  const Plan plan = small.search({.top = 3, .threads = 1}).plans.back().plan;
  const PlanRank one = rank_of(plan, Ticks(1), small.job(1)),
                 two = rank_of(plan, Ticks(1), small.job(2));
  EXPECT_EQ(one.fitting, two.fitting);
  EXPECT_EQ(one.drawn, two.drawn);
  EXPECT_EQ(one.faster, two.faster);
}

}  // namespace
}  // namespace meshwright
