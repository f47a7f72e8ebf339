#include "planner/partition/replication_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/random.hpp"

namespace meshwright {
namespace {

/// A node on one device, with 2 s per micro-batch and 8 bytes for each in flight, or recomputed in
/// 3 s with 1 byte for each; and no parameters.
ReplicationNode recomputable() {
  return {.name = "n",
          .degrees = {{.degree = 1,
                       .parameters = Bytes(0),
                       .variants = {{"stored", Seconds(2), Bytes(8), Bytes(0)},
                                    {"recomputed", Seconds(3), Bytes(1), Bytes(0)}}}}};
}

ReplicationEdge edge(std::int32_t source, std::int32_t target, std::int64_t bytes) {
  return {.source = source,
          .target = target,
          .transfer = Bytes(bytes),
          .source_sync = {Bytes(0), Bytes(0)},
          .target_sync = {Bytes(0), Bytes(0)}};
}

/// One stage per node: the first has 2 micro-batches in flight, which take 16 bytes stored.
TEST(ReplicationPartition, RecomputesWhereMemoryIsShort) {
  ReplicationProblem problem{.nodes = {recomputable(), recomputable()},
                             .edges = {edge(0, 1, 0)},
                             .devices = 2,
                             .microbatches = 4,
                             .device_memory = Bytes(16),
                             .bandwidth = BytesPerSecond(1)};
  EXPECT_EQ(partition_with_replication(problem)->time, Seconds(2));
  problem.device_memory = Bytes(15);
  const auto best = partition_with_replication(problem);
  ASSERT_TRUE(best.has_value());
  // Both nodes on two replicas: 1 in flight each, 16 bytes stored or 9 with one node recomputed:
  // (2 + 3) / 2.
  EXPECT_NEAR(best->time.value, 2.5, 1e-9);
  EXPECT_LE(best->stages[0].memory, Bytes(15));
  problem.device_memory = Bytes(1);
  EXPECT_FALSE(partition_with_replication(problem).has_value());
}

// ---- brute force over chains
// ----------------------------------------------------------------------

struct RandomChain {
  std::uint32_t state;
  int below(int n) { return static_cast<int>(xorshift32(state) % static_cast<std::uint32_t>(n)); }
  ReplicationProblem make() {
    ReplicationProblem problem{.nodes = {},
                               .edges = {},
                               .devices = 1 + below(6),
                               .microbatches = 4,
                               .device_memory = Bytes(10 + below(40)),
                               .bandwidth = BytesPerSecond(10)};
    for (std::int32_t v = 0; v < 4; ++v) {
      ReplicationNode node{.name = "n", .degrees = {}};
      for (const int degree : {1, 2})
        node.degrees.push_back({.degree = degree,
                                .parameters = Bytes(below(20)),
                                .variants = {{"only", Seconds((2 + below(9)) / (degree * 1.0)),
                                              Bytes(below(6)), Bytes(below(6))}}});
      problem.nodes.push_back(node);
      if (v > 0) problem.edges.push_back(edge(v - 1, v, below(30)));
    }
    return problem;
  }
};

struct BestChain {
  const ReplicationProblem& problem;
  double best = 1e30;
  void extend(std::vector<ReplicatedStage> stages, std::int32_t next, int devices) {
    if (next == 4) {
      int data = 0;
      for (const ReplicatedStage& stage : stages) data += stage.data;
      if (data > std::min(problem.microbatches, problem.devices)) return;
      price_stages(problem, stages);
      double slowest = 0;
      for (const ReplicatedStage& stage : stages) {
        if (stage.memory > problem.device_memory) return;
        slowest = std::max(slowest, stage.time.value);
      }
      best = std::min(best, slowest);
      return;
    }
    for (std::int32_t end = next + 1; end <= 4; ++end)
      for (const int data : {1, 2, 4})
        for (const int tensor : {1, 2}) {
          if (devices + data * tensor > problem.devices) continue;
          ReplicatedStage stage{
              .nodes = {}, .variant = {}, .data = data, .tensor = tensor, .time = {}, .memory = {}};
          for (std::int32_t v = next; v < end; ++v) stage.nodes.push_back(v);
          stage.variant.assign(stage.nodes.size(), 0);
          stages.push_back(stage);
          extend(stages, end, devices + data * tensor);
          stages.pop_back();
        }
  }
};

TEST(ReplicationPartition, IsTheBestOfAllCutsAndDegreesOfRandomChains) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomChain random{seed};
    const ReplicationProblem problem = random.make();
    BestChain expected{problem};
    expected.extend({}, 0, 0);
    const auto found = partition_with_replication(problem);
    ASSERT_EQ(found.has_value(), expected.best < 1e30);
    if (!found) continue;
    EXPECT_NEAR(found->time.value, expected.best, 1e-9 * expected.best);
    EXPECT_LE(found->lower_bound, found->time);
  }
}

/// Two chains of 2 nodes with 1 s each have 9 down-sets. With 3 at most, one order is searched: 4
/// nodes on 2 devices take 2 s, which is all work evenly on all devices.
TEST(ReplicationPartition, SearchesOneOrderOfGraphsWithManyDownSets) {
  ReplicationProblem problem{.nodes = {},
                             .edges = {edge(0, 2, 0), edge(1, 3, 0)},
                             .devices = 2,
                             .microbatches = 4,
                             .device_memory = Bytes(16),
                             .bandwidth = BytesPerSecond(1)};
  for (int v = 0; v < 4; ++v)
    problem.nodes.push_back(
        {.name = "n",
         .degrees = {{.degree = 1,
                      .parameters = Bytes(0),
                      .variants = {{"only", Seconds(1), Bytes(0), Bytes(0)}}}}});
  const auto all = partition_with_replication(problem);
  const auto one = partition_with_replication(problem, 3);
  ASSERT_TRUE(all && one);
  EXPECT_EQ(all->down_sets, 9);
  EXPECT_EQ(one->down_sets, 5);
  EXPECT_NEAR(one->time.value, 2, 1e-9);
  EXPECT_TRUE(one->is_optimal());
  // 4 / 3 s of work on each of 3 devices, but data degrees add up to at most 2.
  problem.devices = 3;
  problem.microbatches = 2;
  const auto uneven = partition_with_replication(problem, 3);
  ASSERT_TRUE(uneven.has_value());
  EXPECT_NEAR(uneven->time.value, 2, 1e-9);
  EXPECT_FALSE(uneven->is_optimal());
  EXPECT_NEAR(uneven->lower_bound.value, 4.0 / 3, 1e-9);
}

}  // namespace
}  // namespace meshwright
