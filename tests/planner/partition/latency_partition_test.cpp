#include "planner/partition/latency_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

namespace meshwright {
namespace {

PartitionNode node(std::int64_t accelerator, std::int64_t host, std::int64_t transfer,
                   std::int64_t memory = 1) {
  return {.name = "n",
          .accelerator_time = Ticks(accelerator),
          .host_time = Ticks(host),
          .transfer_time = Ticks(transfer),
          .memory = Bytes(memory)};
}

PartitionProblem random_problem(std::uint32_t seed, std::size_t size) {
  std::mt19937 random(seed);
  const auto uniform = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  PartitionProblem problem{.nodes = {},
                           .edges = {},
                           .accelerators = uniform(1, 3),
                           .hosts = uniform(0, 1),
                           .accelerator_memory = Bytes(uniform(4, 9))};
  for (std::size_t v = 0; v < size; ++v) {
    const bool is_free = uniform(0, 4) == 0;
    problem.nodes.push_back(
        is_free ? node(0, 0, uniform(0, 4), uniform(0, 2))
                : node(uniform(1, 9), uniform(5, 40), uniform(0, 4), uniform(0, 3)));
    if (uniform(0, 9) == 0) problem.nodes.back().runs_on_accelerator = false;
    for (std::size_t u = 0; u < v; ++u)
      if (uniform(0, 2) == 0)
        problem.edges.push_back({static_cast<std::int32_t>(u), static_cast<std::int32_t>(v)});
  }
  return problem;
}

/// Longest path over calls, or nothing if they depend on each other. Device 0: hosts.
std::optional<std::int64_t> latency_on(const PartitionProblem& problem,
                                       const std::vector<int>& device) {
  const std::size_t size = problem.nodes.size();
  std::vector<std::int64_t> memory(static_cast<std::size_t>(problem.accelerators) + 1, 0);
  for (std::size_t v = 0; v < size; ++v) {
    if (device[v] > 0 && !problem.nodes[v].runs_on_accelerator) return std::nullopt;
    if (device[v] == 0 && problem.hosts == 0) return std::nullopt;
    memory[static_cast<std::size_t>(device[v])] += problem.nodes[v].memory.value;
  }
  for (std::size_t d = 1; d < memory.size(); ++d)
    if (memory[d] > problem.accelerator_memory.value) return std::nullopt;
  const auto same_call = [&](std::size_t u, std::size_t v) {
    return u == v || (device[u] > 0 && device[u] == device[v]);
  };
  const auto load_of = [&](std::size_t v) {
    if (device[v] == 0) return problem.nodes[v].host_time.value;
    std::int64_t load = 0;
    for (std::size_t u = 0; u < size; ++u) {
      bool inside = false, outside = false;
      if (device[u] == device[v])
        load += problem.nodes[u].accelerator_time.value, inside = true;
      else
        outside = true;
      bool is_read = false;
      for (const PartitionEdge& edge : problem.edges) {
        if (static_cast<std::size_t>(edge.source) != u) continue;
        is_read = true;
        (device[static_cast<std::size_t>(edge.target)] == device[v] ? inside : outside) = true;
      }
      if (is_read && inside && outside) load += problem.nodes[u].transfer_time.value;
    }
    return load;
  };
  std::vector<std::optional<std::int64_t>> finish(size);
  std::vector<bool> is_open(size, false);
  std::function<std::optional<std::int64_t>(std::size_t)> finish_of =
      [&](std::size_t v) -> std::optional<std::int64_t> {
    if (finish[v]) return finish[v];
    if (is_open[v]) return std::nullopt;
    std::vector<std::size_t> call;
    for (std::size_t u = 0; u < size; ++u)
      if (same_call(u, v)) call.push_back(u), is_open[u] = true;
    std::int64_t start = 0;
    for (const PartitionEdge& edge : problem.edges) {
      const auto source = static_cast<std::size_t>(edge.source);
      if (!same_call(static_cast<std::size_t>(edge.target), v) || same_call(source, v)) continue;
      const auto before = finish_of(source);
      if (!before) return std::nullopt;
      start = std::max(start, *before);
    }
    for (const std::size_t u : call) finish[u] = start + load_of(v);
    return finish[v];
  };
  std::int64_t latency = 0;
  for (std::size_t v = 0; v < size; ++v) {
    const auto each = finish_of(v);
    if (!each) return std::nullopt;
    latency = std::max(latency, *each);
  }
  return latency;
}

/// Tries all devices of all nodes.
std::optional<std::int64_t> least_of_all(const PartitionProblem& problem) {
  std::optional<std::int64_t> least;
  std::vector<int> device(problem.nodes.size(), 0);
  for (;;) {
    const auto latency = latency_on(problem, device);
    if (latency && (!least || *latency < *least)) least = latency;
    std::size_t v = 0;
    while (v < device.size() && device[v] == problem.accelerators) device[v++] = 0;
    if (v == device.size()) return least;
    ++device[v];
  }
}

/// 3 + 1 to memory; 1 + 4 + 1 and 1 + 5 + 1 at the same time; 1 + 1 + 2.
TEST(LatencyPartition, BranchesRunAtTheSameTime) {
  PartitionProblem problem{
      .nodes = {node(3, 90, 1), node(4, 90, 1), node(5, 90, 1), node(2, 90, 1)},
      .edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}},
      .accelerators = 4,
      .hosts = 0,
      .accelerator_memory = Bytes(1)};
  const auto partition = partition_for_latency(problem);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->latency, Ticks(4 + 7 + 4));
  EXPECT_EQ(partition->lower_bound, partition->latency);
  EXPECT_EQ(partition->stages.size(), 4U);
  problem.accelerator_memory = Bytes(4);  // all on one device
  EXPECT_EQ(partition_for_latency(problem)->latency, Ticks(3 + 4 + 5 + 2));
}

/// A host computes a node without transfers: 6 instead of 2 + 5 + 2 between other hosts' nodes.
TEST(LatencyPartition, HostsComputeWhatIsNotWorthATransfer) {
  PartitionProblem problem{.nodes = {node(1, 1, 2), node(5, 6, 2), node(1, 1, 2)},
                           .edges = {{0, 1}, {1, 2}},
                           .accelerators = 1,
                           .hosts = 1,
                           .accelerator_memory = Bytes(1)};
  problem.nodes[0].runs_on_accelerator = problem.nodes[2].runs_on_accelerator = false;
  const auto partition = partition_for_latency(problem);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->latency, Ticks(8));
  ASSERT_EQ(partition->stages.size(), 1U);
  EXPECT_TRUE(partition->stages[0].on_host);
}

TEST(LatencyPartition, IsTheShortestOfAllPartitions) {
  int found = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = random_problem(seed, 4 + seed % 3);
    const std::optional<std::int64_t> least = least_of_all(problem);
    const auto partition = partition_for_latency(problem);
    ASSERT_EQ(partition.has_value(), least.has_value());
    if (!partition) continue;
    ++found;
    EXPECT_EQ(partition->latency.value, *least);
    EXPECT_LE(partition->lower_bound, partition->latency);
    std::vector<PartitionStage> stages = partition->stages;
    EXPECT_EQ(price_latency(problem, stages), partition->latency);
  }
  EXPECT_GT(found, 200);
}

TEST(LatencyPartition, WithoutTimeToSearchHasABound) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const PartitionProblem problem = random_problem(seed, 6);
    const auto partition = partition_for_latency(problem, {.down_sets = 2});
    const std::optional<std::int64_t> least = least_of_all(problem);
    if (!partition) continue;
    ASSERT_TRUE(least);
    EXPECT_GE(partition->latency.value, *least);
    EXPECT_LE(partition->lower_bound.value, *least);
  }
}

/// Chains of more items than are searched one by one.
TEST(LatencyPartition, OfManyNodesIsFoundInBlocks) {
  PartitionProblem problem{.nodes = std::vector(20'000, node(3, 50, 1)),
                           .edges = {},
                           .accelerators = 4,
                           .hosts = 1,
                           .accelerator_memory = Bytes(6'000)};
  for (std::int32_t v = 1; v < 20'000; ++v) problem.edges.push_back({v - 1, v});
  const auto partition = partition_for_latency(problem);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->latency, Ticks(20'000 * 3 + 3 * 2));
  EXPECT_EQ(partition->lower_bound, Ticks(20'000 * 3));
}

}  // namespace
}  // namespace meshwright
