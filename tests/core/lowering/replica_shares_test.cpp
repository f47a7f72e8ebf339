// Graphs of replicas with unequal shares of the batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/lowering/replicated_graph.hpp"
#include "tests/core/lowering/data_parallel_graphs.hpp"

namespace meshwright::testing_models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Four data ranks: two with 3 micro-batches, two with 1.
Strategy with_shares(int pipeline = 1) {
  Strategy s = strategy_of({.data = 4, .pipeline = pipeline}, 2);
  s.batch_shares = *batch_shares_from_text("0-1:3+2-3:1");
  return s;
}

std::map<int, std::vector<int>> forwards_by_rank(const TaskGraph& graph) {
  std::map<int, std::vector<int>> forwards;
  for (const Task& task : graph.tasks)
    if (task.kind == TaskKind::kForward) forwards[task.rank].push_back(task.microbatch);
  return forwards;
}

TEST(UnequalShares, HaveOneRepresentativeEach) {
  const TaskGraph graph = lowered(with_shares());
  ASSERT_EQ(graph.ranks.size(), 2);
  EXPECT_EQ(graph.ranks[0].rank, RankId(0));
  EXPECT_EQ(graph.ranks[1].rank, RankId(2));
  for (const RankInfo& rank : graph.ranks) EXPECT_EQ(rank.multiplicity, 2);
  const auto forwards = forwards_by_rank(graph);
  EXPECT_THAT(forwards.at(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(forwards.at(1), ElementsAre(2));
}

// The ranks of a pipeline rank are neighbors: [pipeline rank, data rank].
TEST(UnequalShares, AreThoseOfAllRanks) {
  const TaskGraph all = lowered(with_shares(2), RankSet::kAll);
  ASSERT_EQ(all.ranks.size(), 8);
  const auto forwards = forwards_by_rank(all);
  for (const int rank : {0, 1, 4, 5}) EXPECT_THAT(forwards.at(rank), ElementsAre(0, 1, 2)) << rank;
  for (const int rank : {2, 3, 6, 7}) EXPECT_THAT(forwards.at(rank), ElementsAre(2)) << rank;
}

// All replicas take part in reductions and in the gradient norm.
TEST(UnequalShares, JoinInOneReduction) {
  for (const RankSet ranks : {RankSet::kRepresentatives, RankSet::kAll}) {
    Strategy s = with_shares();
    s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(100'000)};
    const TaskGraph graph = lowered(s, ranks);
    for (const CollectiveMembers& members : graph.collectives)
      EXPECT_EQ(members.count, static_cast<std::int32_t>(graph.ranks.size()));
    Strategy equal = s;
    equal.batch_shares.clear();
    EXPECT_EQ(graph.collectives.size(), lowered(equal, ranks).collectives.size());
  }
}

TEST(UnequalShares, MayBeEqual) {
  Strategy equal = strategy_of({.data = 4, .pipeline = 2}, 3);
  Strategy listed = equal;
  listed.batch_shares = *batch_shares_from_text("0-3:3");
  EXPECT_EQ(lowered(listed), lowered(equal));
  EXPECT_EQ(lowered(listed, RankSet::kAll), lowered(equal, RankSet::kAll));
}

/// A node of two fast devices, and one of two slow ones.
Cluster fast_and_slow() {
  Cluster cluster = cluster_of(1, 2);
  const auto [name, node] = *cluster.nodes.begin();
  DeviceModel slow = cluster.devices.at(node.device);
  for (auto& peak : slow.peak)
    if (peak) peak = *peak * 0.5;
  cluster.devices["slow"] = slow;
  cluster.nodes["slow"] = node;
  cluster.nodes["slow"].device = "slow";
  cluster.groups.push_back({"slow", 1});
  return cluster;
}

// Passes of the two representatives are priced on their own devices.
TEST(UnequalShares, RunOnTheirOwnNodes) {
  const TaskGraph graph = lowered(with_shares(), RankSet::kRepresentatives, fast_and_slow());
  std::map<int, std::set<int>> kinds;
  for (const Task& task : graph.tasks) {
    const Work& work = graph.works[task.work.index()];
    if (is_compute(work.kind)) kinds[task.rank].insert(work.node_kind);
  }
  EXPECT_THAT(kinds.at(0), ElementsAre(0));
  EXPECT_THAT(kinds.at(1), ElementsAre(1));
}

TEST(UnequalShares, AreRefusedWhereRanksCommunicateInEveryMicrobatch) {
  const auto is_accepted = [](const Strategy& s) {
    return check_plan(plan_of(s, 3), gpt({.blocks = 3}), cluster_of(4, 2)).empty();
  };
  EXPECT_TRUE(is_accepted(with_shares()));
  Strategy s = with_shares();
  s.zero = 1;
  EXPECT_TRUE(is_accepted(s));
  s.zero = 2;
  EXPECT_FALSE(is_accepted(s));
  s = with_shares();
  s.data_parallelism.kind = DataParallelKind::kRing;
  EXPECT_FALSE(is_accepted(s));
  for (const std::string_view shares :
       {"0-1:3+2:1", "0-1:3+2-4:1", "1-3:2+0:2+0:1", "0-2:3+2-3:1", "0-1:2+2-3:1", "0-1:4+2-3:0"}) {
    s = with_shares();
    s.batch_shares = *batch_shares_from_text(shares);
    EXPECT_FALSE(is_accepted(s)) << shares;
  }
}

}  // namespace
}  // namespace meshwright::testing_models
