// Rings, parameter servers, one process and offloaded optimizer state in a task graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/lowering/data_parallel_graphs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using namespace testing_models;

// ---- a ring, round by round -----------------------------------------------------------------

// Executes the graph with five ranks and a vector of five chunks: in every round, each member sends
// chunk (i - round) mod 5 to the next one. After 4 rounds every rank has one complete sum, after 8
// all of them.
TEST(Ring, OfFiveSumsInEightRounds) {
  const TaskGraph graph =
      lowered(strategy_with(DataParallelKind::kRing, 5), RankSet::kAll, cluster_of(5, 1));
  constexpr int kRanks = 5;
  std::vector<std::vector<int>> chunks(kRanks, std::vector<int>(kRanks));
  for (int rank = 0; rank < kRanks; ++rank)
    for (int chunk = 0; chunk < kRanks; ++chunk)
      chunks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(chunk)] = 1 << rank;
  int rounds = 0;
  for (const CollectiveMembers& members : graph.collectives) {
    const Task& task = graph.tasks[static_cast<std::size_t>(members.first)];
    const Collective& c = graph.works[task.work.index()].collective;
    if (c.kind != CollectiveKind::kRingExchange) continue;
    ASSERT_EQ(members.count, kRanks);
    EXPECT_EQ(c.bytes, Bytes(4 * 44'762));  // ceil(223,808 / 5) elements
    EXPECT_EQ(c.first_round, rounds++);
    const auto before = chunks;
    for (int i = 0; i < kRanks; ++i) {
      const auto from = static_cast<std::size_t>(i),
                 to = static_cast<std::size_t>((i + 1) % kRanks);
      const auto chunk = static_cast<std::size_t>(((i - c.first_round) % kRanks + kRanks) % kRanks);
      if (c.first_round < kRanks - 1)
        chunks[to][chunk] += before[from][chunk];
      else
        chunks[to][chunk] = before[from][chunk];
    }
    for (std::size_t i = 0; rounds == 4 && i < kRanks; ++i)
      EXPECT_EQ(chunks[i][(i + 1) % kRanks], 31) << "rank " << i;
  }
  EXPECT_EQ(rounds, 8);
  for (const auto& own : chunks) EXPECT_THAT(own, ElementsAre(31, 31, 31, 31, 31));
}

// Under ZeRO 1 the first half of the rounds is the reduce-scatter, the second half the all-gather
// after the update, in the stored type.
TEST(Ring, IsSplitIntoTwoHalvesByZero1) {
  Strategy s = data_strategy(4, 1);
  s.data_parallelism.kind = DataParallelKind::kRing;
  std::vector<std::pair<int, std::int64_t>> rounds;
  for (const Collective& c : collectives_of(lowered(s), CollectiveKind::kRingExchange))
    rounds.emplace_back(c.first_round, c.bytes.value);
  using Round = std::pair<int, std::int64_t>;
  EXPECT_THAT(rounds, ElementsAre(Round(0, kAll), Round(1, kAll), Round(2, kAll),
                                  Round(3, kAll / 2), Round(4, kAll / 2), Round(5, kAll / 2)));
}

// Two nodes of four: the alternating order begins with the first ranks of both nodes.
TEST(Ring, VisitsNodesInTheOrderOfThePlan) {
  const auto order = [](RingOrder ring_order) {
    Strategy s = strategy_with(DataParallelKind::kRing, 8);
    s.data_parallelism.ring_order = ring_order;
    const TaskGraph graph = lowered(s, RankSet::kAll, cluster_of(2, 4));
    std::vector<int> ranks;
    const CollectiveMembers& members = graph.collectives.front();
    for (std::int32_t i = members.first; i < members.first + members.count; ++i)
      ranks.push_back(graph.tasks[static_cast<std::size_t>(i)].rank);
    return ranks;
  };
  EXPECT_THAT(order(RingOrder::kNeighbors), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(order(RingOrder::kAlternating), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
}

// ---- one process, parameter servers ---------------------------------------------------------

// Two sequences of 128 tokens on each of two devices: inputs 2 * 256 * 8 bytes, 2-byte logits over
// a vocabulary of 512: 2 * 256 * 512 * 2.
TEST(OneProcess, ScattersGathersAndUpdatesOnTheFirstDevice) {
  const TaskGraph graph = lowered(strategy_with(DataParallelKind::kOneProcess, 2));
  std::vector<std::string> first, second;
  for (const Task& task : graph.tasks) {
    const Work& work = graph.works[task.work.index()];
    std::string name(name_of(task.kind));
    if (task.kind == TaskKind::kCollective)
      name = std::string(name_of(work.collective.kind)) + " " +
             std::to_string(work.collective.bytes.value);
    (task.rank == 0 ? first : second).push_back(name);
  }
  EXPECT_THAT(first, ElementsAre("broadcast 447616", "scatter 4096", "F", "gather 524288", "F",
                                 "scatter 524288", "B", "reduce 895232", "optimizer"));
  EXPECT_THAT(second, ElementsAre("broadcast 447616", "scatter 4096", "F", "gather 524288",
                                  "scatter 524288", "B", "reduce 895232"));
  EXPECT_EQ(graph.ranks[0].resident[MemoryClass::kOptimizer], Bytes(12 * kAll));
  EXPECT_EQ(graph.ranks[1].resident[MemoryClass::kOptimizer], Bytes(0));
  // Gathered outputs and their gradient in 2 bytes, the loss in 4, of two devices; and its own.
  const std::int64_t words = 256 * 512;
  EXPECT_EQ(peak_held(graph, MemoryClass::kLogits), 2 * words * (2 + 4 + 2) + words * 2);
}

// Six workers, two servers with one half each; synchronous servers have buffers for all pushes.
TEST(ParameterServer, ShardsStateEquallyOverServers) {
  Strategy s = strategy_with(DataParallelKind::kParameterServer, 6);
  s.data_parallelism.servers = 2;
  const TaskGraph folded = lowered(s);
  ASSERT_EQ(folded.ranks.size(), 2u);
  EXPECT_EQ(folded.ranks[0].multiplicity, 6);
  EXPECT_EQ(folded.ranks[1].multiplicity, 2);
  const MemoryAmounts &worker = folded.ranks[0].resident, &server = folded.ranks[1].resident;
  EXPECT_EQ(worker[MemoryClass::kWeights], Bytes(2 * kAll));
  EXPECT_EQ(worker[MemoryClass::kGradients], Bytes(4 * kAll));
  EXPECT_EQ(worker[MemoryClass::kOptimizer], Bytes(0));
  EXPECT_EQ(server[MemoryClass::kWeights], Bytes(kAll));
  EXPECT_EQ(server[MemoryClass::kGradients], Bytes(2 * kAll));
  EXPECT_EQ(server[MemoryClass::kOptimizer], Bytes(6 * kAll));
  EXPECT_EQ(server[MemoryClass::kCommunication], Bytes(6 * 2 * kAll));

  EXPECT_EQ(lowered(s, RankSet::kAll).ranks.size(), 8u);
  s.data_parallelism.colocated_servers = true;
  const TaskGraph mixed = lowered(s);
  ASSERT_EQ(mixed.ranks.size(), 2u);
  EXPECT_EQ(mixed.ranks[0].multiplicity, 4);
  EXPECT_EQ(mixed.ranks[1].multiplicity, 2);
  EXPECT_EQ(mixed.ranks[1].resident[MemoryClass::kWeights], Bytes(3 * kAll));
}

// bf16, six workers: the sum reads 6 * 4 bytes a parameter and writes 4; norm and clipping 12;
// AdamW reads the gradient, reads and writes master and moments, writes the weight: 4 + 24 + 2.
TEST(ParameterServer, SumsAndClipsBeforeItUpdates) {
  Strategy s = strategy_with(DataParallelKind::kParameterServer, 6);
  const auto updates = [&] {
    const TaskGraph graph = lowered(s);
    Bytes traffic;
    for (const Task& task : graph.tasks)
      if (task.kind == TaskKind::kOptimizer)
        for (const WorkPartUse& use : graph.works[task.work.index()].parts)
          for (const Step& step : graph.parts[static_cast<std::size_t>(use.part)].steps)
            traffic += std::get<Kernel>(step).memory_traffic;
    return traffic;
  };
  EXPECT_EQ(updates(), Bytes((28 + 12 + 30) * kAll));
  s.data_parallelism.servers = 2;  // folded: one of them, with half
  EXPECT_EQ(updates(), Bytes((28 + 12 + 30) * kAll / 2));
}

// Four workers, two servers: every pair exchanges one push and one pull of half the parameters.
TEST(AsyncParameterServer, ExchangesBetweenEveryWorkerAndServer) {
  Strategy s = strategy_with(DataParallelKind::kAsyncParameterServer, 4);
  s.data_parallelism.servers = 2;
  const TaskGraph graph = lowered(s);
  EXPECT_EQ(graph.ranks.size(), 6u);
  std::map<std::pair<int, int>, int> pushes;
  for (const CollectiveMembers& members : graph.collectives) {
    ASSERT_EQ(members.count, 2);
    const Task& worker = graph.tasks[static_cast<std::size_t>(members.first)];
    const Collective& c = graph.works[worker.work.index()].collective;
    EXPECT_EQ(c.bytes, Bytes(c.kind == CollectiveKind::kPush ? 2 * kAll : kAll));
    if (c.kind == CollectiveKind::kPush)
      ++pushes[{worker.rank, graph.tasks[static_cast<std::size_t>(members.first) + 1].rank}];
  }
  EXPECT_EQ(pushes.size(), 8u);
}

// ---- optimizer state in host memory ---------------------------------------------------------

// ZeRO 1 over 4 ranks: a quarter of the gradients in 4 bytes goes to the host, of the weights in 2
// bytes comes back; AdamW touches 4 + 8 + 16 + 2 = 30 bytes per parameter there.
TEST(Offload, LeavesTheDeviceWithoutOptimizerState) {
  Strategy s = data_strategy(4, 1);
  s.data_parallelism.offload_optimizer = true;
  Cluster cluster = cluster_of(4, 2);
  cluster.nodes.at("test-node").host =
      HostModel{.device_link = BytesPerSecond(32e9), .memory_bandwidth = BytesPerSecond(400e9)};
  const TaskGraph graph = lowered(s, RankSet::kRepresentatives, cluster);
  EXPECT_EQ(graph.ranks[0].resident[MemoryClass::kOptimizer], Bytes(0));
  EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kCopyToHost)), kAll);
  EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kCopyFromHost)), kAll / 2);
  for (const Task& task : graph.tasks) {
    if (task.stream != Stream::kHost) continue;
    const Work& work = graph.works[task.work.index()];
    const auto part = static_cast<std::size_t>(work.parts.front().part);
    const auto& kernel = std::get<Kernel>(graph.parts[part].steps.front());
    EXPECT_TRUE(kernel.on_host);
    EXPECT_EQ(kernel.memory_traffic, Bytes(30 * kAll / 4));
  }
}

}  // namespace
}  // namespace meshwright
