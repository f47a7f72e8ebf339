#include "planner/partition/pipedream_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/base/random.hpp"

namespace meshwright {
namespace {

/// A chain of nodes with 6 s, outputs of 10 bytes and 8 bytes of parameters.
PipeDreamProblem chain(int nodes, std::vector<PipeDreamLevel> levels) {
  PipeDreamProblem problem{.nodes = {}, .edges = {}, .levels = std::move(levels)};
  for (int v = 0; v < nodes; ++v) {
    problem.nodes.push_back(
        {.name = "n", .time = Seconds(6), .activation = Bytes(10), .parameters = Bytes(8)});
    if (v > 0) problem.edges.push_back({v - 1, v});
  }
  return problem;
}

// One stage on 2 devices: (12 + 4 * 1 * 16 / (2 * 8)) / 2 = 8 s. Two stages on one device each: 6 s
// and a transfer of 2 * 10 / 8 = 2.5 s, which is hidden.
TEST(PipeDreamPartition, CutsWhereTransfersAreHidden) {
  const PipeDreamPartition best =
      partition_as_pipedream(chain(2, {{.size = 2, .bandwidth = BytesPerSecond(8)}}));
  EXPECT_EQ(best.stages.size(), 2U);
  EXPECT_NEAR(best.time.value, 6, 1e-12);
  EXPECT_EQ(best.lower_bound, best.time);
}

// At 2 bytes per second, a transfer takes 10 s; one replicated stage (12 + 16) / 2 = 14 s; one
// device alone 12 s.
TEST(PipeDreamPartition, CountsTransfersOnTheLaterStageAndMayLeaveDevicesIdle) {
  PipeDreamProblem problem = chain(2, {{.size = 2, .bandwidth = BytesPerSecond(2)}});
  PipeDreamPartition best = partition_as_pipedream(problem);
  EXPECT_NEAR(best.time.value, 10, 1e-12);
  ASSERT_EQ(best.stages.size(), 2U);
  EXPECT_NEAR(best.stages[0].time.value, 6, 1e-12);
  EXPECT_NEAR(best.stages[1].time.value, 10, 1e-12);
  problem.levels[0].bandwidth = BytesPerSecond(1);  // 20 s, (12 + 32) / 2 = 22 s, or 12 s
  best = partition_as_pipedream(problem);
  EXPECT_NEAR(best.time.value, 12, 1e-12);
  EXPECT_EQ(best.stages.size(), 1U);
}

// Two servers of two devices: servers without transfers inside, so 6 s for both nodes; two of them
// take (6 + 4 * 1 * 16 / (2 * 8) / 2) / 2 = 4 s, since the first stage of a level divides the
// all-reduce by the devices of a server. A node per server takes (6 + 4 * 8 / (2 * 1e9)) / 2 = 3 s,
// and a transfer of 2 * 10 / 8 = 2.5 s.
TEST(PipeDreamPartition, NestsStagesInsideOfServers) {
  PipeDreamProblem problem = chain(2, {{.size = 2, .bandwidth = BytesPerSecond(1e9)},
                                       {.size = 2, .bandwidth = BytesPerSecond(8)}});
  PipeDreamPartition best = partition_as_pipedream(problem);
  EXPECT_NEAR(best.time.value, 3, 1e-6);
  ASSERT_EQ(best.stages.size(), 2U);
  ASSERT_EQ(best.stages[0].inner.size(), 1U);
  EXPECT_EQ(best.stages[0].inner[0].replicas, 2);
  problem.levels[1].bandwidth = BytesPerSecond(4);  // 5 s, or (6 + 4) / 2 = 5 s, or 6 s
  best = partition_as_pipedream(problem);
  EXPECT_NEAR(best.time.value, 5, 1e-6);
}

// ---- brute force over all chains of down-sets and all replicas
// -----------------------------------

struct RandomGraph {
  std::uint32_t state;
  int below(int n) { return static_cast<int>(xorshift32(state) % static_cast<std::uint32_t>(n)); }
  PipeDreamProblem make(std::size_t levels) {
    PipeDreamProblem problem;
    constexpr std::int32_t kNodes = 5;
    for (std::int32_t v = 0; v < kNodes; ++v) {
      problem.nodes.push_back({.name = "n",
                               .time = Seconds(1 + below(9)),
                               .activation = Bytes(below(40)),
                               .parameters = Bytes(below(20))});
      for (std::int32_t source = 0; source < v; ++source)
        if (below(2) == 0) problem.edges.push_back({source, v});
    }
    for (std::size_t level = 0; level < levels; ++level)
      problem.levels.push_back({.size = 1 + below(3), .bandwidth = BytesPerSecond(2 + below(20))});
    return problem;
  }
};

/// Lists all stages of the nodes in `all`, which follow those in `done`, on a level.
class AllStages {
 public:
  explicit AllStages(const PipeDreamProblem& problem) : problem_(problem) {}
  std::vector<std::vector<PipeDreamStage>> list(std::size_t level, unsigned done, unsigned all) {
    std::vector<std::vector<PipeDreamStage>> result;
    extend(level, done, all, problem_.levels[level].size, {}, result);
    return result;
  }

 private:
  bool is_down_set(unsigned set) const {
    return std::all_of(problem_.edges.begin(), problem_.edges.end(), [&](const auto& edge) {
      return !((set >> edge.target) & 1U) || ((set >> edge.source) & 1U);
    });
  }
  void extend(std::size_t level, unsigned done, unsigned all, int groups,
              const std::vector<PipeDreamStage>& stages,
              std::vector<std::vector<PipeDreamStage>>& result) {
    if (all == 0) {
      result.push_back(stages);
      return;
    }
    for (unsigned part = all; part > 0; part = (part - 1) & all) {
      if (!is_down_set(done | part)) continue;
      std::vector<std::vector<PipeDreamStage>> inner(1);
      if (level > 0) inner = list(level - 1, done, part);
      for (const auto& of_group : inner)
        for (int replicas = 1; replicas <= groups; ++replicas) {
          std::vector<PipeDreamStage> more = stages;
          more.push_back({.nodes = {}, .replicas = replicas, .inner = of_group, .time = {}});
          for (std::int32_t v = 0; v < static_cast<std::int32_t>(problem_.nodes.size()); ++v)
            if ((part >> v) & 1U) more.back().nodes.push_back(v);
          extend(level, done | part, all & ~part, groups - replicas, more, result);
        }
    }
  }
  const PipeDreamProblem& problem_;
};

TEST(PipeDreamPartition, IsTheBestOfAllStagesOfRandomGraphs) {
  constexpr std::uint32_t kSeeds = 60;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const PipeDreamProblem problem = RandomGraph{seed}.make(1 + seed % 2);
    double expected = std::numeric_limits<double>::infinity();
    const unsigned all = (1U << problem.nodes.size()) - 1;
    for (auto& stages : AllStages(problem).list(problem.levels.size() - 1, 0, all))
      expected = std::min(expected, price_stages(problem, stages).value);
    const PipeDreamPartition found = partition_as_pipedream(problem);
    EXPECT_NEAR(found.time.value, expected, 1e-9 * expected);
    // With fewer cuts, stages are no better, and the bound holds.
    const PipeDreamPartition some = partition_as_pipedream(problem, 1);
    EXPECT_GE(some.time.value, expected * (1 - 1e-9));
    EXPECT_LE(some.lower_bound.value, expected * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace meshwright
