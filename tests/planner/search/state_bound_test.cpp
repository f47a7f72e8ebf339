#include "planner/search/state_bound.hpp"

#include <gtest/gtest.h>

#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

constexpr Bytes kNothing(1);

const SearchSpace::Branch& branch_of(const SearchSpace& space, const ParallelDegrees& degrees) {
  return *std::ranges::find_if(space.branches, [&](const SearchSpace::Branch& branch) {
    return branch.layout.degrees == degrees;
  });
}

// ZeRO 3 shards 18 bytes per parameter: 2 of weights, 4 of gradients, 12 of the optimizer.
TEST(StateBound, IsTheShardedStateOfTheMeanPipelineRank) {
  const SmallJob small(small_dense_model(), kNothing, kSmallGoal);
  const SearchJob job = small.job();
  const SearchSpace space = small.space();
  const StateBound bound(job, space);
  const std::int64_t parameters = parameter_count(small.model);
  EXPECT_EQ(bound.shortfall_of(branch_of(space, {.data = 8}))->needed,
            Bytes(18 * (parameters / 8)));
  const SearchSpace::Branch& split = branch_of(space, {.data = 2, .pipeline = 2, .tensor = 2});
  EXPECT_EQ(bound.shortfall_of(split)->needed, Bytes(18 * (parameters / 2 / 2) / 2));
  EXPECT_EQ(bound.leanest(split).zero, 3);
}

TEST(StateBound, LeavesOutStateThatIsInHostMemory) {
  SmallJob small(small_dense_model(), kNothing, kSmallGoal);
  small.fixed.offload_optimizer = true;
  const SearchJob job = small.job();
  const SearchSpace space = small.space();
  EXPECT_EQ(StateBound(job, space).shortfall_of(branch_of(space, {.data = 8}))->needed,
            Bytes(6 * (parameter_count(small.model) / 8)));
}

class StateBoundOf : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DenseAndExperts, StateBoundOf, testing::Bool());

TEST_P(StateBoundOf, EveryCandidateIsBelowItsPeak) {
  const SmallJob small(GetParam() ? small_expert_model() : small_dense_model(), kNothing,
                       kSmallGoal);
  const SearchJob job = small.job();
  const SearchSpace space = small.space();
  const StateBound bound(job, space);
  CandidateCosts costs(job);
  double tightest = 0;
  constexpr std::size_t kTried = 500;
  for (Candidate candidate : small.candidates(kTried)) {
    if (candidate.recompute.kind == RecomputeKind::kBlocks) candidate.recompute.blocks = 1;
    const Plan plan = costs.plan_of(candidate);
    SCOPED_TRACE(text_of(plan));
    const auto branch =
        std::ranges::find(space.branches, candidate.layout, &SearchSpace::Branch::layout);
    ASSERT_NE(branch, space.branches.end());
    const Bytes peak = peak_memory(small.evaluate(plan)),
                needed = bound.shortfall_of(*branch)->needed;
    ASSERT_LE(needed, peak);
    tightest = std::max(tightest, ratio(needed, peak));
  }
  EXPECT_GT(tightest, 0.5);
}

}  // namespace
}  // namespace meshwright
