#include "planner/partition/throughput_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/base/random.hpp"

namespace meshwright {
namespace {

PartitionNode node(std::int64_t accelerator, std::int64_t host, std::int64_t transfer) {
  return {.name = "n",
          .accelerator_time = Ticks(accelerator),
          .host_time = Ticks(host),
          .transfer_time = Ticks(transfer),
          .memory = Bytes(1)};
}

Ticks busiest(std::vector<PartitionStage> stages, const PartitionProblem& problem) {
  price_stages(problem, stages);
  Ticks load;
  for (const PartitionStage& stage : stages) load = std::max(load, stage.load);
  return load;
}

/// Three nodes of 4, 4 and 6 in a chain, transfers of 1, on two accelerators: {4, 4 | 6} has loads
/// 8 + 1 and 6 + 1, {4 | 4, 6} has 4 + 1 and 10 + 1.
TEST(ThroughputPartition, CutsAChainWhereTheBusiestDeviceIsLeastLoaded) {
  const PartitionProblem problem{.nodes = {node(4, 90, 1), node(4, 90, 1), node(6, 90, 1)},
                                 .edges = {{0, 1}, {1, 2}},
                                 .accelerators = 2,
                                 .accelerator_memory = Bytes(10)};
  const auto best = partition_for_throughput(problem);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->load, Ticks(9));
  EXPECT_EQ(best->lower_bound, Ticks(9));
  ASSERT_EQ(best->stages.size(), 2u);
  EXPECT_EQ(best->stages[0].nodes, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(best->stages[1].load, Ticks(7));
}

/// A source with two readers on another device is transferred once: 5 + 1 and 2 + 2 + 1.
TEST(ThroughputPartition, TransfersAnOutputOnceToADevice) {
  const PartitionProblem problem{.nodes = {node(5, 90, 1), node(2, 90, 0), node(2, 90, 0)},
                                 .edges = {{0, 1}, {0, 2}},
                                 .accelerators = 2,
                                 .accelerator_memory = Bytes(10)};
  EXPECT_EQ(partition_for_throughput(problem)->load, Ticks(6));
}

TEST(ThroughputPartition, DoesNotExistBeyondTheMemory) {
  PartitionProblem problem{.nodes = {node(1, 1, 0), node(1, 1, 0)},
                           .edges = {{0, 1}},
                           .accelerators = 1,
                           .accelerator_memory = Bytes(1)};
  EXPECT_FALSE(partition_for_throughput(problem).has_value());
  problem.hosts = 1;
  EXPECT_EQ(partition_for_throughput(problem)->load, Ticks(1));
}

/// Nodes of a color share a device although the edge between them leads through the middle one, so
/// all three do.
TEST(ThroughputPartition, KeepsColocatedNodesAndWhatIsBetweenThemTogether) {
  PartitionProblem problem{.nodes = {node(3, 9, 0), node(3, 9, 0), node(3, 9, 0)},
                           .edges = {{0, 1}, {1, 2}},
                           .accelerators = 3,
                           .accelerator_memory = Bytes(10)};
  EXPECT_EQ(partition_for_throughput(problem)->load, Ticks(3));
  problem.nodes[0].colocation = problem.nodes[2].colocation = 7;
  EXPECT_EQ(partition_for_throughput(problem)->load, Ticks(9));
}

/// 20 chains of 10 nodes have 11^20 down-sets: no proof, but valid bounds.
TEST(ThroughputPartition, OfWideGraphsHasALowerBound) {
  PartitionProblem problem;
  problem.accelerators = 4;
  problem.accelerator_memory = Bytes(1000);
  constexpr std::int32_t kChains = 20, kLength = 10;
  for (std::int32_t i = 0; i < kChains * kLength; ++i) {
    problem.nodes.push_back(node(10 + i % 7, 1000, 1));
    if (i >= kChains) problem.edges.push_back({i - kChains, i});
  }
  const auto best = partition_for_throughput(problem);
  ASSERT_TRUE(best.has_value());
  EXPECT_LT(best->lower_bound, best->load);
  EXPECT_LT(ratio(best->load, best->lower_bound), 1.1);
  EXPECT_EQ(busiest(best->stages, problem), best->load);
}

/// Merged into its neighbor, the node without time would need 12 bytes of 8.
TEST(ThroughputPartition, PlacesANodeWithoutTimeWhereItsMemoryFits) {
  PartitionProblem problem{.nodes = {node(5, 90, 1), node(0, 0, 0)},
                           .edges = {{0, 1}},
                           .accelerators = 2,
                           .accelerator_memory = Bytes(8)};
  for (PartitionNode& n : problem.nodes) n.memory = Bytes(6);
  EXPECT_EQ(partition_for_throughput(problem).value().load, Ticks(6));
}

/// Devices times load exceeds 64 bits. Each node is fast on the host or as fast as possible
/// anywhere.
TEST(ThroughputPartition, CountsManyDevicesAndLongTimes) {
  const std::int64_t kLong = 500'000'000'000'000;
  const PartitionProblem problem{.nodes = {node(kLong, 1, 0), node(kLong, 1'000'000'000, 0)},
                                 .edges = {},
                                 .accelerators = kMostPartitionDevices,
                                 .hosts = 64,
                                 .accelerator_memory = Bytes(8)};
  const auto best = partition_for_throughput(problem);
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->load, Ticks(1'000'000'000));
  EXPECT_LE(best->lower_bound, best->load);
}

/// Two loads of 1 ps: below the next threshold nothing takes time.
TEST(ThroughputPartition, ProvesTheShortestLoad) {
  const PartitionProblem problem{.nodes = {node(1, 1, 0), node(1, 1, 0)},
                                 .edges = {},
                                 .accelerators = 2,
                                 .accelerator_memory = Bytes(8)};
  const auto best = partition_for_throughput(problem);
  EXPECT_EQ(best->load, Ticks(1));
  EXPECT_EQ(best->lower_bound, Ticks(1));
}

/// Searched as a chain of blocks: the load is at least the even share of 25,000, and at most one
/// block more.
TEST(ThroughputPartition, CutsGraphsWithVeryManyNodes) {
  PartitionProblem problem{.nodes = std::vector<PartitionNode>(100'000, node(1, 90, 0)),
                           .edges = {},
                           .accelerators = 4,
                           .accelerator_memory = Bytes(100'000)};
  for (std::int32_t v = 1; v < 100'000; ++v) problem.edges.push_back({v - 1, v});
  const auto best = partition_for_throughput(problem);
  ASSERT_TRUE(best.has_value());
  EXPECT_GE(best->load, Ticks(25'000));
  EXPECT_LE(best->load, Ticks(25'000 + 100'000 / 1024 + 1));
}

// ---- brute force
// ----------------------------------------------------------------------------------

/// All assignments of nodes to devices 0 <= d < accelerators + hosts such that forward edges never
/// go to an earlier position of some order of devices, and all colors are on one device.
class BruteForce {
 public:
  explicit BruteForce(const PartitionProblem& problem)
      : problem_(problem), device_(problem.nodes.size()) {}

  std::optional<Ticks> best() {
    std::vector<bool> is_host;
    for (int d = 0; d < problem_.accelerators + problem_.hosts; ++d)
      is_host.push_back(d >= problem_.accelerators);
    do assign(0, is_host);
    while (std::next_permutation(is_host.begin(), is_host.end()));
    return best_;
  }

 private:
  void assign(std::size_t next, const std::vector<bool>& is_host) {
    if (next == device_.size()) return price(is_host);
    for (std::size_t d = 0; d < is_host.size(); ++d) {
      device_[next] = d;
      if (is_allowed(next)) assign(next + 1, is_host);
    }
  }
  bool is_allowed(std::size_t last) const {
    for (std::size_t v = 0; v < last; ++v)
      if (problem_.nodes[v].colocation >= 0 &&
          problem_.nodes[v].colocation == problem_.nodes[last].colocation &&
          device_[v] != device_[last])
        return false;
    for (const auto& [source, target] : problem_.edges) {
      const auto s = static_cast<std::size_t>(source), t = static_cast<std::size_t>(target);
      if (s <= last && t <= last && !problem_.nodes[t].is_backward && device_[s] > device_[t])
        return false;
    }
    return true;
  }
  void price(const std::vector<bool>& is_host) {
    std::vector<PartitionStage> stages(is_host.size());
    for (std::size_t d = 0; d < is_host.size(); ++d) stages[d].on_host = is_host[d];
    for (std::size_t v = 0; v < device_.size(); ++v) {
      stages[device_[v]].nodes.push_back(static_cast<std::int32_t>(v));
      if (!is_host[device_[v]] && !problem_.nodes[v].runs_on_accelerator) return;
    }
    price_stages(problem_, stages);
    Ticks load;
    for (const PartitionStage& stage : stages) {
      if (!stage.on_host && stage.memory > problem_.accelerator_memory) return;
      load = std::max(load, stage.load);
    }
    if (!best_ || load < *best_) best_ = load;
  }

  const PartitionProblem& problem_;
  std::vector<std::size_t> device_;
  std::optional<Ticks> best_;
};

struct RandomGraph {
  std::uint32_t state;
  int below(int n) { return static_cast<int>(xorshift32(state) % static_cast<std::uint32_t>(n)); }

  PartitionNode timed_node() {
    const int transfer = below(8);
    return below(4) == 0 ? node(0, 0, transfer) : node(1 + below(9), 1 + below(40), transfer);
  }

  /// Some nodes take no time; in training graphs each forward node has a backward node of its
  /// color, with mirrored edges.
  PartitionProblem make(bool is_training) {
    PartitionProblem problem;
    problem.accelerators = 1 + below(3);
    problem.hosts = below(2);
    const int forward = is_training ? 5 : 7;
    for (int v = 0; v < forward; ++v) {
      problem.nodes.push_back(timed_node());
      problem.nodes.back().memory = Bytes(below(4));
      problem.nodes.back().runs_on_accelerator = below(12) > 0;
      for (int u = 0; u < v; ++u)
        if (below(3) == 0) problem.edges.push_back({u, v});
    }
    problem.accelerator_memory = Bytes(3 + below(12));
    if (is_training) {
      const std::vector<PartitionEdge> edges = problem.edges;
      for (int v = 0; v < forward; ++v) {
        problem.nodes[static_cast<std::size_t>(v)].colocation = v;
        problem.nodes.push_back(timed_node());
        problem.nodes.back().colocation = v;
        problem.nodes.back().is_backward = true;
        if (below(2) == 0) problem.edges.push_back({v, forward + v});
      }
      for (const auto& [u, v] : edges) problem.edges.push_back({forward + v, forward + u});
    } else if (below(3) == 0) {
      problem.nodes[1].colocation = problem.nodes[4].colocation = 3;
    }
    return problem;
  }
};

void expect_the_optimum(std::uint32_t seed, bool is_training) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  RandomGraph random{seed};
  const PartitionProblem problem = random.make(is_training);
  const std::optional<Ticks> expected = BruteForce(problem).best();
  const auto found = partition_for_throughput(problem);
  ASSERT_EQ(found.has_value(), expected.has_value());
  if (!found) return;
  EXPECT_EQ(found->load, *expected);
  EXPECT_EQ(found->lower_bound, *expected);
  EXPECT_EQ(busiest(found->stages, problem), found->load);
}

TEST(ThroughputPartition, IsTheBestOfAllAssignmentsOfRandomInferenceGraphs) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) expect_the_optimum(seed, false);
}

TEST(ThroughputPartition, IsTheBestOfAllAssignmentsOfRandomTrainingGraphs) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) expect_the_optimum(seed, true);
}

}  // namespace
}  // namespace meshwright
