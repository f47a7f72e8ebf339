// Searches on clusters with nodes of two types.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "planner/search/memory_screen.hpp"
#include "planner/search/node_selection.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::Ge;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using Nodes = std::vector<NodeGroup>;

SmallJob small_job(Cluster cluster, bool experts = false) {
  return {experts ? small_expert_model() : small_dense_model(), std::move(cluster), kSmallGoal};
}

TEST(NodeSelections, HaveEveryTypeAloneAndTogetherInEveryOrder) {
  EXPECT_THAT(
      node_selections(fast_and_slow(2, 2, 0.5), 16),
      UnorderedElementsAre(Nodes{{"fast", 2}}, Nodes{{"slow", 2}}, Nodes{{"fast", 2}, {"slow", 2}},
                           Nodes{{"slow", 2}, {"fast", 2}}));
}

// Twelve devices are three nodes: two fast ones and a slow one, or the reverse.
TEST(NodeSelections, FillOneTypeAfterTheOther) {
  EXPECT_THAT(
      node_selections(fast_and_slow(2, 2, 0.5), 12),
      UnorderedElementsAre(Nodes{{"fast", 2}}, Nodes{{"slow", 2}}, Nodes{{"fast", 2}, {"slow", 1}},
                           Nodes{{"slow", 1}, {"fast", 2}}, Nodes{{"fast", 1}, {"slow", 2}},
                           Nodes{{"slow", 2}, {"fast", 1}}));
}

TEST(NodeSelections, HavePowersOfTwoAndPartsOfANode) {
  EXPECT_THAT(
      node_selections(fast_and_slow(3, 1, 0.5), 16),
      UnorderedElementsAre(Nodes{{"fast", 3}}, Nodes{{"fast", 2}}, Nodes{{"slow", 1}},
                           Nodes{{"fast", 3}, {"slow", 1}}, Nodes{{"fast", 2}, {"slow", 1}},
                           Nodes{{"slow", 1}, {"fast", 3}}, Nodes{{"slow", 1}, {"fast", 2}}));
  EXPECT_THAT(node_selections(fast_and_slow(1, 1, 0.5), 2),
              UnorderedElementsAre(Nodes{{"fast", 1}}, Nodes{{"slow", 1}}));
}

class MixedCandidates : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DenseAndExperts, MixedCandidates, testing::Bool());

TEST_P(MixedCandidates, TakeAtLeastTheirBounds) {
  constexpr std::size_t kTried = 800;
  SmallJob small = small_job(fast_and_slow(1, 1, 0.4, Bytes(40'000'000'000)), GetParam());
  small.fixed.micro_batch = 2;
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  double tightest = 0;
  int unequal = 0;
  for (Candidate candidate : small.candidates(kTried)) {
    if (candidate.recompute.kind == RecomputeKind::kBlocks) candidate.recompute.blocks = 1;
    const Plan plan = costs.plan_of(candidate);
    SCOPED_TRACE(fmt::format("{} relief {}", text_of(plan), candidate.pipeline.relief));
    const Ticks simulated = small.evaluate(plan).step_time;
    const CandidateBounds bounds = bounds_of(candidate, costs);
    ASSERT_TRUE(are_ascending(bounds));
    ASSERT_LE(bounds.candidate, simulated);
    tightest = std::max(tightest, ratio(bounds.candidate, simulated));
    const SharedLayers layers = costs.layers(candidate.layout, candidate.recompute);
    if (layers->mixed.kinds.front() != layers->mixed.kinds.back()) ++unequal;
  }
  EXPECT_EQ(tightest, 1.0) << "without a pipeline the bound is the step time";
  EXPECT_GT(unequal, 100);
}

TEST_P(MixedCandidates, AreTurnedDownOnlyIfTheirSimulatedPeakDoesNotFit) {
  constexpr std::size_t kTried = 800;
  SmallJob small = small_job(
      fast_and_slow(1, 1, 0.4, Bytes(GetParam() ? 250'000'000 : 500'000'000)), GetParam());
  small.fixed.micro_batch = 2;
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  MemoryScreen screen(job, costs);
  int rejected = 0, kept = 0;
  for (Candidate candidate : small.candidates(kTried)) {
    if (candidate.recompute.kind == RecomputeKind::kBlocks) candidate.recompute.blocks = 1;
    const bool fits = fits_in_memory(small.evaluate(costs.plan_of(candidate)));
    if (screen.shortfall_of(candidate)) {
      ASSERT_FALSE(fits);
      ++rejected;
    } else if (fits) {
      ++kept;
    }
  }
  EXPECT_GT(rejected, 20);
  EXPECT_GT(kept, 20);
}

/// The fastest plan of every combination of parallel sizes on every set of nodes, over all orders
/// of the nodes: simulates everything, with cost models of the selected nodes alone.
std::vector<Ticks> fastest_rows(const SmallJob& whole) {
  std::map<std::pair<std::map<std::string, int>, ParallelDegrees>, Ticks> rows;
  for (const Nodes& nodes : node_selections(whole.cluster, whole.goal.gpus)) {
    SmallJob small(whole.model, with_nodes(whole.cluster, nodes), whole.goal);
    small.goal.gpus = std::min(whole.goal.gpus, device_count(small.cluster));
    small.fixed = whole.fixed;
    const SearchJob job = small.job();
    CandidateCosts costs(job);
    std::map<std::string, int> counts;
    for (const NodeGroup& group : nodes) counts[group.node] = group.count;
    for (const Candidate& candidate : small.candidates()) {
      const Evaluation evaluation = small.evaluate(costs.plan_of(candidate));
      if (!fits_in_memory(evaluation)) continue;
      const auto [row, is_new] =
          rows.try_emplace({counts, candidate.layout.degrees}, evaluation.step_time);
      row->second = std::min(row->second, evaluation.step_time);
    }
  }
  std::vector<Ticks> times;
  for (const auto& [key, time] : rows) times.push_back(time);
  std::ranges::sort(times);
  return times;
}

/// One node of four fast devices, and two nodes of two slow ones.
Cluster with_smaller_nodes(double share, Bytes memory) {
  Cluster cluster = fast_and_slow(1, 2, share, memory);
  NodeModel& slow = cluster.nodes.at("slow");
  slow.device_count = 2;
  slow.ports = std::max(1, slow.ports / 4);
  return cluster;
}

/// Whether slow nodes have fewer devices, and bytes of memory of a slow device.
class MixedSearch : public testing::TestWithParam<std::pair<bool, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Clusters, MixedSearch,
                         testing::Values(std::pair(false, 80'000'000'000),
                                         std::pair(false, 600'000'000),
                                         std::pair(false, 400'000'000),
                                         std::pair(true, 80'000'000'000),
                                         std::pair(true, 400'000'000)));

TEST_P(MixedSearch, FindsWhatSimulatingEverythingFinds) {
  constexpr int kRows = 3;
  const auto& [has_smaller_nodes, memory] = GetParam();
  SmallJob small = small_job(has_smaller_nodes ? with_smaller_nodes(0.5, Bytes(memory))
                                               : fast_and_slow(1, 1, 0.5, Bytes(memory)));
  small.fixed.micro_batch = 1;
  small.fixed.context = 1;
  small.fixed.sequence_parallel = false;
  small.fixed.buckets = GradientBuckets{};
  small.fixed.offload_optimizer = false;
  small.fixed.recompute = Recompute{};
  small.fixed.shard_ranks = 0;
  const std::vector<Ticks> expected = fastest_rows(small);
  ASSERT_THAT(expected, SizeIs(Ge(static_cast<std::size_t>(kRows))));
  const SearchResult found = small.search({.top = kRows, .threads = 2, .selects_nodes = true});
  EXPECT_TRUE(found.certificate.proved_optimal);
  ASSERT_THAT(found.plans, SizeIs(kRows));
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    EXPECT_EQ(found.plans[i].evaluation.step_time, expected[i]) << "row " << i + 1;
    const SmallJob part(small.model, with_nodes(small.cluster, found.plans[i].nodes), small.goal);
    EXPECT_EQ(part.evaluate(found.plans[i].plan), found.plans[i].evaluation);
  }
}

// A stage is as fast as its slowest device: with slow devices at a fiftieth of the rates, the fast
// node alone is faster.
TEST(NodeSearch, LeavesSlowNodesUnused) {
  const SearchResult found =
      small_job(fast_and_slow(1, 1, 0.02)).search({.top = 2, .threads = 1, .selects_nodes = true});
  ASSERT_FALSE(found.plans.empty());
  EXPECT_EQ(found.plans.front().nodes, Nodes({{"fast", 1}}));
  EXPECT_EQ(found.plans.front().evaluation.job_ranks, 4);
  EXPECT_THAT(found.by_nodes, SizeIs(3));
}

// The best plan of every set of nodes is what a search of these nodes alone finds.
TEST(NodeSearch, ComparesTheSetsOfNodes) {
  const SmallJob small = small_job(fast_and_slow(1, 1, 0.6));
  const SearchResult found = small.search({.top = 2, .threads = 1, .selects_nodes = true});
  ASSERT_THAT(found.by_nodes, SizeIs(3));
  for (const BestOfNodes& best : found.by_nodes) {
    ASSERT_TRUE(best.best);
    EXPECT_GE(best.best->evaluation.step_time, found.plans.front().evaluation.step_time);
    SmallJob alone(small.model, with_nodes(small.cluster, best.nodes), small.goal);
    alone.goal.gpus = device_count(alone.cluster);
    const SearchResult again = alone.search({.top = 1, .threads = 1});
    EXPECT_EQ(best.best->evaluation.step_time, again.plans.front().evaluation.step_time);
  }
}

}  // namespace
}  // namespace meshwright
