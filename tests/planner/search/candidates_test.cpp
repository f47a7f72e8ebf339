#include "planner/search/candidates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "planner/search/stage_partition.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

CandidateSpace space_of(const SmallJob& small) {
  return enumerate_candidates(small.model, small.cluster, small.goal, small.fixed);
}

// One device, batch 4: micro-batches 1, 2, 4; one schedule; no, some or all blocks recomputed; no
// ZeRO without replicas. 3 * 3 candidates.
TEST(Candidates, AreFewOnOneDevice) {
  const SmallJob small(small_dense_model(), kPlenty, {1, 4, 512});
  const CandidateSpace space = space_of(small);
  EXPECT_EQ(space.candidates.size(), 9u);
  for (const Candidate& candidate : space.candidates) EXPECT_EQ(candidate.rule->name, "1f1b");
}

// tp 2, pp 2, dp 2, 1f1b, batch 8: micro-batches 1, 2, 4; sequence parallel or not; 3 ways to
// recompute; ZeRO 0 or 1: 3 * 2 * 3 * 2.
TEST(Candidates, CoverEveryCombinationOfWhatIsFree) {
  SmallJob small(small_dense_model(), kPlenty, {8, 8, 512});
  small.fixed.tensor = 2;
  small.fixed.pipeline = 2;
  small.fixed.schedule = "1f1b";
  EXPECT_EQ(space_of(small).candidates.size(), 36u);
  small.fixed.attention = AttentionAlgorithm::kStandard;  // selective recomputation makes sense
  EXPECT_EQ(space_of(small).candidates.size(), 48u);
}

TEST(Candidates, AreDistinctAndSound) {
  const SmallJob small(small_expert_model(), kPlenty, {8, 16, 512});
  const CandidateSpace space = space_of(small);
  for (const Candidate& candidate : space.candidates) {
    Plan plan{strategy_of(candidate, small.goal, small.fixed), even_cut(4, candidate.parts)};
    EXPECT_TRUE(check_plan(plan, small.model, small.cluster).empty());
    EXPECT_EQ(rank_count(candidate.degrees), 8);
  }
  std::vector<Candidate> sorted = space.candidates;
  std::sort(sorted.begin(), sorted.end(), is_simpler);
  EXPECT_EQ(
      std::adjacent_find(sorted.begin(), sorted.end(),
                         [](const Candidate& a, const Candidate& b) { return !is_simpler(a, b); }),
      sorted.end());
}

TEST(Candidates, UseOnlySchedulesThatAreWorthSearchingUnlessAsked) {
  SmallJob small(small_dense_model(), kPlenty, {8, 16, 512});
  std::set<std::string_view> names;
  for (const Candidate& candidate : space_of(small).candidates) names.insert(candidate.rule->name);
  EXPECT_EQ(names.count("naive"), 0u);
  EXPECT_EQ(names.count("1f1b"), 1u);
  EXPECT_EQ(names.count("interleaved-1f1b"), 1u);
  small.fixed.schedule = "naive";
  for (const Candidate& candidate : space_of(small).candidates)
    EXPECT_EQ(candidate.rule->name, "naive");
}

TEST(Candidates, InterleaveOnlySeveralChunks) {
  const SmallJob small(small_dense_model(), kPlenty, {8, 16, 512});
  for (const Candidate& candidate : space_of(small).candidates)
    if (candidate.rule->name == "interleaved-1f1b") {
      EXPECT_GT(candidate.degrees.chunks, 1);
    }
}

TEST(Candidates, KeepTensorRanksInANodeUnlessAsked) {
  SmallJob small(small_dense_model(), kPlenty, {64, 64, 512});
  for (const Candidate& candidate : space_of(small).candidates)
    EXPECT_LE(candidate.degrees.tensor, 8);
}

}  // namespace
}  // namespace meshwright
