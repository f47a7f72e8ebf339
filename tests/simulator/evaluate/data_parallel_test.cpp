// Time and memory of the data axis: overlap, rings, servers, levels of ZeRO.
//
// The tiny GPT has blocks of 49,984 parameters, tables of 40,960 and a head of 32,896.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "core/lowering/lower.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::IsEmpty;
using namespace testing_models;

constexpr std::int64_t kBlock = 49'984, kTables = 40'960, kHead = 32'896;

/// A price that is exactly this many Ticks once it is rounded up.
Seconds exactly(std::int64_t ticks) {
  constexpr double kTicks = 1e12;
  return Seconds(ticks == 0 ? 0.0 : (static_cast<double>(ticks) - 0.5) / kTicks);
}

/// One unit of time, 100 Ticks, per parameter: the backward pass of a block takes as many units as
/// it has parameters, all other passes nothing; a reduction takes one for every element.
constexpr std::int64_t kUnit = 100;
class ParameterCosts : public CostModel {
 public:
  Seconds time_of(const Kernel& k) const override {
    const bool counts = k.kind == KernelKind::kAttention && k.phase == Phase::kBackwardInput;
    return exactly(counts ? kUnit * kBlock : 0);
  }
  Seconds time_of(const Collective& c) const override { return exactly(kUnit * c.bytes.value / 4); }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  std::string provenance() const override { return "test"; }
};

struct Simulated {
  TaskGraph graph;
  std::vector<WorkPrice> prices;
  SimulatedTimes times;
  Evaluation evaluation;
};

Simulated simulated(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                    const CostModel& costs, RankSet ranks = RankSet::kRepresentatives) {
  Simulated s;
  s.graph = lower(plan, model, cluster, {.ranks = ranks, .check_each_pass = true});
  s.prices = price_works(s.graph.parts, s.graph.works, costs);
  s.times = simulate(s.graph, s.prices);
  JobFacts job;
  job.job_ranks = rank_count(plan.strategy.degrees);
  s.evaluation = evaluate(s.graph, s.prices, s.times, job);
  return s;
}

// ---- overlap --------------------------------------------------------------------------------

// Four blocks, two micro-batches, every parameter a bucket. In units, b = 49,984: the last backward
// runs from 4 b to 8 b. The head is reduced at 4 b, block 4 from 5 b on, then blocks 3, 2, 1 from
// 6, 7, 8 b, as each takes b; the tables follow at 9 b, then the norm (one element). So 9 b +
// 40,960 + 1 = 490,817, of which 490,817 - 8 b = 90,945 are exposed. Without overlap all of 4 b +
// 73,856 follows 8 b: 673,665.
TEST(Buckets, HideReductionsBehindTheLastBackward) {
  Strategy s = strategy_of({.data = 2}, 2);
  const auto run = [&] {
    return simulated(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(1, 2), ParameterCosts())
        .evaluation;
  };
  EXPECT_EQ(run().step_time, Ticks(kUnit * (12 * kBlock + kTables + kHead + 1)));
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(1)};
  const Evaluation overlapped = run();
  EXPECT_EQ(overlapped.step_time, Ticks(kUnit * 490'817));
  EXPECT_EQ(overlapped.ranks[0].exposed_communication[static_cast<std::size_t>(Axis::kData)],
            Ticks(kUnit * 90'945));
}

// ZeRO 2 with one micro-batch: each layer is a bucket, so the same times; with two, the first
// backward's reductions are exposed too where the second one waits for a buffer: blocks and
// reductions keep pace, so that only the tables (40,960) and the head (32,896) stand in between.
// Step: head's reduction starts at 0 and ends at 32,896 < b; block 4's runs b..2b, ... block 1's
// 4b..5b, tables 5b..5b + 40,960. Second pass: head's pass (nothing) waits for the reduction of
// block 1 at 5b, block 4's pass for the tables' at 5b + 40,960 and ends at 6b + 40,960; its own
// reduction follows the head's, 5b + 73,856 < 6b + 40,960. Blocks 3, 2, 1 end at 9b + 40,960, the
// last reductions at 10b + 40,960 + 40,960, the norm one later.
TEST(Buckets, PaceTheNextMicrobatchUnderZero2) {
  Strategy s = strategy_of({.data = 2}, 2);
  s.zero = 2;
  const Simulated run =
      simulated(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(1, 2), ParameterCosts());
  Ticks norm_end;
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i)
    if (run.graph.tasks[i].kind == TaskKind::kCollective && run.graph.tasks[i].stage < 0)
      norm_end = run.times.end[i];
  EXPECT_EQ(norm_end, Ticks(kUnit * (10 * kBlock + 2 * kTables + 1)));
}

/// One reduction unit per gradient, half a unit per gathered value of two bytes; network with links
/// of a thousand times the traffic, where nothing contends.
SimulatedTimes times_with_events(const Simulated& s) {
  Cluster wide = cluster_of(1, 2);
  for (auto& [name, node] : wide.nodes) node.local.bandwidth = node.local.bandwidth * 1e9;
  return simulate_with_contention(s.graph, s.prices, LinkNetwork(wide, 2));
}

// ZeRO 3, four blocks, one micro-batch. In units, b = 49,984, tables t = 40,960, head h = 32,896; a
// gather takes half of them, the backward pass of a block b, all other passes nothing. Gathers and
// reductions take turns on one stream, in the order in which they can start:
//   gathers  t 0..20,480, block 1 ..45,472, 2 ..70,464, 3 ..95,456, 4 ..120,448, head ..136,896
//   forward  ends with the gather of the head, which its backward pass uses, too
//   gather   block 4 ..161,888   reduce  head ..194,784   gather  block 3 ..219,776
//   pass     block 4 161,888..211,872, block 3 219,776..269,760 (waits for its gather)
//   reduce   block 4 ..269,760   gather  block 2 ..294,752
//   pass     block 2 294,752..344,736
//   reduce   block 3 ..344,736   gather  block 1 ..369,728
//   pass     block 1 369,728..419,712
//   reduce   block 2 ..419,712   gather  tables ..440,192 (of their pass, which takes nothing)
//   reduce   block 1 ..490,176, tables ..531,136, and the norm one unit
TEST(FullySharded, GathersAndReductionsTakeTurns) {
  Strategy s = strategy_of({.data = 2}, 1);
  s.zero = 3;
  const Simulated run =
      simulated(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(1, 2), ParameterCosts());
  std::vector<std::int64_t> starts;  // of the backward passes: head, blocks 4 to 1, tables
  for (std::size_t i = 0; i < run.graph.tasks.size(); ++i)
    if (run.graph.tasks[i].kind == TaskKind::kBackward)
      starts.push_back(run.times.start[i].value / kUnit);
  EXPECT_THAT(starts, testing::ElementsAre(136'896, 161'888, 219'776, 294'752, 369'728, 440'192));
  EXPECT_EQ(run.evaluation.step_time, Ticks(kUnit * 531'137));
  EXPECT_EQ(times_with_events(run), run.times);
}

// ---- rings ----------------------------------------------------------------------------------

Ticks data_time(const Simulated& s) {
  Ticks sum;
  for (std::size_t i = 0; i < s.graph.tasks.size(); ++i) {
    const Task& task = s.graph.tasks[i];
    if (task.rank == 0 && task.kind == TaskKind::kCollective &&
        s.graph.works[task.work.index()].collective.parameters.count > 0)
      sum += s.times.end[i] - s.times.start[i];
  }
  return sum;
}

Simulated of_kind(DataParallelKind kind, int data, const Cluster& cluster, int servers = 1,
                  bool colocated = false) {
  Strategy s = strategy_of({.data = data}, 1);
  s.data_parallelism.kind = kind;
  s.data_parallelism.servers = servers;
  s.data_parallelism.colocated_servers = colocated;
  return simulated(plan_of(s, 3), gpt({.blocks = 3}), cluster, *make_device_cost_model(cluster));
}

/// K: gradients of three blocks, tables and head in fp32.
constexpr double kGradients = 4.0 * (3 * kBlock + kTables + kHead);

double microseconds(Ticks time) { return to_seconds(time).value * 1e6; }

// Five nodes of one device, ports of 25 GB/s, K = 895,232 bytes in five chunks of 44,762 elements:
//   round 1 .. 4  scatter-reduce  179,048 bytes each way on every link  7.16192 us, sum 28.64768
//   round 5 .. 8  all-gather      179,048 bytes                        7.16192 us, sum 57.29536
// 8 * 179,048 = 1,432,384 bytes per device: 2 (5 - 1) / 5 K = 1,432,371.2 and the last chunk's
// room.
TEST(RingOfFive, TakesEightRoundsOfAFifth) {
  const Simulated s = of_kind(DataParallelKind::kRing, 5, cluster_of(5, 1));
  std::vector<double> ends;
  Ticks first_start = Ticks::max();
  std::int64_t sent = 0;
  for (std::size_t i = 0; i < s.graph.tasks.size(); ++i) {
    const Collective& c = s.graph.works[s.graph.tasks[i].work.index()].collective;
    if (s.graph.tasks[i].kind != TaskKind::kCollective || c.kind != CollectiveKind::kRingExchange)
      continue;
    first_start = std::min(first_start, s.times.start[i]);
    ends.push_back(microseconds(s.times.end[i] - first_start));
    sent += c.bytes.value;
  }
  ASSERT_EQ(ends.size(), 8u);
  EXPECT_EQ(sent, 1'432'384);
  constexpr double kTick = 1e-6;  // every price is rounded up to one
  for (std::size_t round = 0; round < ends.size(); ++round)
    EXPECT_NEAR(ends[round], 7.16192 * static_cast<double>(round + 1), 8 * kTick);
}

// Two nodes of four, one port of 25 GB/s each: chunks of 27,976 elements are 111,904 bytes. In rank
// order one hop leaves each node, 4.47616 us a round; with all hops between nodes four share the
// port: 17.90464 us. Inside a node a hop would take 0.373 us: the slowest link decides.
TEST(RingOrder, IsFastestWithNeighborsInsideANode) {
  Cluster cluster = cluster_of(2, 4);
  cluster.nodes.at("test-node").ports = 1;
  const auto time_of = [&](RingOrder order) {
    Strategy s = strategy_of({.data = 8}, 1);
    s.data_parallelism.kind = DataParallelKind::kRing;
    s.data_parallelism.ring_order = order;
    return microseconds(data_time(
        simulated(plan_of(s, 3), gpt({.blocks = 3}), cluster, *make_device_cost_model(cluster))));
  };
  EXPECT_NEAR(time_of(RingOrder::kNeighbors), 14 * 4.47616, 1e-4);
  EXPECT_NEAR(time_of(RingOrder::kAlternating), 14 * 17.90464, 1e-4);
}

// 120 MB over two nodes of four with a port of 25 GB/s per device and 300 GB/s inside:
//   ring          2 * 7/8 * 120 MB / 25 GB/s                                    8.4 ms
//   tree          twice 120 MB / 25 GB/s                                        9.6 ms
//   hierarchical  2 * 3/4 * 120 MB / 300 GB/s + 2 * 1/2 * 30 MB / 25 GB/s       0.6 + 1.2 = 1.8 ms
TEST(CollectiveAlgorithm, DecidesWhichLinksCarryWhat) {
  const auto costs = make_device_cost_model(cluster_of(2, 4));
  const auto milliseconds = [&](CollectiveAlgorithm algorithm) {
    Collective c;
    c.bytes = Bytes(120'000'000);
    c.group = {.ranks = 8, .nodes = 2, .groups_per_node = 1};
    c.algorithm = algorithm;
    return costs->time_of(c).value * 1e3;
  };
  EXPECT_NEAR(milliseconds(CollectiveAlgorithm::kRing), 8.4, 1e-9);
  EXPECT_NEAR(milliseconds(CollectiveAlgorithm::kAutomatic), 8.4, 1e-9);
  EXPECT_NEAR(milliseconds(CollectiveAlgorithm::kTree), 9.6, 1e-9);
  EXPECT_NEAR(milliseconds(CollectiveAlgorithm::kHierarchical), 1.8, 1e-9);
}

// Nodes of one device have no local network: the port decides. 2 * 3/4 * 120 MB / 25 GB/s.
TEST(CollectiveAlgorithm, NeedsNoLocalNetworkOnNodesOfOneDevice) {
  Cluster cluster = cluster_of(4, 1);
  cluster.nodes.at("test-node").local = {};
  Collective c;
  c.bytes = Bytes(120'000'000);
  c.group = {.ranks = 4, .nodes = 4, .groups_per_node = 1};
  EXPECT_NEAR(make_device_cost_model(cluster)->time_of(c).value, 7.2e-3, 1e-12);
}

// NCCL's own choice is the fastest of the algorithms that can be forced.
TEST(CollectiveAlgorithm, IsNeverFasterThanTheTunersChoice) {
  Cluster cluster = cluster_of(4, 8);
  cluster.devices.at("test-device").compute_capability = 90;
  cluster.nodes.at("test-node").local.bandwidth = BytesPerSecond(450e9);
  cluster.nodes.at("test-node").local.in_network_reduction = true;
  const auto costs = make_device_cost_model(cluster);
  for (const GroupShape group : {GroupShape{8, 1, 1}, GroupShape{32, 4, 1}})
    for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 32; bytes *= 4) {
      Collective c;
      c.bytes = Bytes(bytes);
      c.group = group;
      const Seconds chosen = costs->time_of(c);
      Seconds best(1e9);
      for (const auto algorithm :
           {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kTree, CollectiveAlgorithm::kNvls}) {
        c.algorithm = algorithm;
        best = std::min(best, costs->time_of(c));
      }
      EXPECT_EQ(best, chosen) << bytes;
    }
}

// ---- parameter servers ----------------------------------------------------------------------

// One server with a port of 25 GB/s takes N K bytes of gradients and hands out N K / 2 of weights,
// so its time grows with N; a ring's 2 (N - 1) / N K stays below 2 K. With K / 25 GB/s = 35.80928
// us:
//   workers    2      4      8     16
//   server  107.4  214.9  429.7  859.4 us
//   ring     35.8   53.7   62.7   67.1 us
TEST(ParameterServer, SaturatesItsLinkWhereARingStaysFlat) {
  const double k = kGradients / 25e9 * 1e6;  // us for K bytes on one link: 35.80928
  EXPECT_NEAR(k, 35.80928, 1e-9);
  for (const int workers : {2, 4, 8, 16}) {
    const double n = workers;
    const Cluster cluster = cluster_of(workers + 1, 1);
    const double served =
        microseconds(data_time(of_kind(DataParallelKind::kParameterServer, workers, cluster)));
    const double ringed =
        microseconds(data_time(of_kind(DataParallelKind::kRing, workers, cluster)));
    EXPECT_NEAR(served, n * k * 1.5, 1e-3);
    EXPECT_NEAR(ringed, 2 * (n - 1) / n * k, 1e-3 * k);  // and chunks rounded up
    EXPECT_GT(served, ringed);
  }
  // 16 workers and 4 servers of a quarter: 16 / 4 K. One server on every worker: 15 / 16 K.
  EXPECT_NEAR(microseconds(
                  data_time(of_kind(DataParallelKind::kParameterServer, 16, cluster_of(20, 1), 4))),
              4 * k * 1.5, 1e-3);
  EXPECT_NEAR(microseconds(data_time(
                  of_kind(DataParallelKind::kParameterServer, 16, cluster_of(16, 1), 16, true))),
              15.0 / 16 * k * 1.5, 1e-1);
}

// Without a barrier pushes cross the server's link one after another, overlapped with updates and
// pulls: N K / 25 GB/s, then one update and one pull.
TEST(AsyncParameterServer, PassesPushesOneAfterAnother) {
  const int workers = 4;
  const Simulated s = of_kind(DataParallelKind::kAsyncParameterServer, workers, cluster_of(5, 1));
  Ticks computed, last_push, last_update, end;
  for (std::size_t i = 0; i < s.graph.tasks.size(); ++i) {
    const Task& task = s.graph.tasks[i];
    const Collective& c = s.graph.works[task.work.index()].collective;
    if (task.kind == TaskKind::kBackward) computed = std::max(computed, s.times.end[i]);
    if (task.kind == TaskKind::kOptimizer) last_update = std::max(last_update, s.times.end[i]);
    if (task.kind == TaskKind::kCollective && c.kind == CollectiveKind::kPush)
      last_push = std::max(last_push, s.times.end[i]);
    end = std::max(end, s.times.end[i]);
  }
  const double k = kGradients / 25e9 * 1e6;
  EXPECT_NEAR(microseconds(last_push - computed), workers * k, 1e-3);
  EXPECT_LT(last_update - last_push, last_push - computed);
  EXPECT_NEAR(microseconds(end - last_update), k / 2, 1e-3);
}

// ---- one process, offload -------------------------------------------------------------------

// Four devices, 300 GB/s each: of the 4 * 262,144 bytes of outputs 3/4 pass device 0's link.
TEST(OneProcess, IsBoundByTheFirstDevicesLink) {
  const Simulated s = of_kind(DataParallelKind::kOneProcess, 4, cluster_of(1, 4));
  for (std::size_t w = 0; w < s.graph.works.size(); ++w) {
    const Work& work = s.graph.works[w];
    if (work.kind != TaskKind::kCollective || work.collective.kind != CollectiveKind::kGather)
      continue;
    EXPECT_NEAR(microseconds(s.prices[w].duration), 3.0 / 4 * 4 * 262'144 / 300e9 * 1e6, 2e-6);
  }
  // The first device also computes the loss of all devices; the others wait for it.
  const auto drain = [&](std::size_t r) {
    return total(s.evaluation.ranks[r]) - s.evaluation.ranks[r].optimizer;
  };
  EXPECT_LT(drain(0), drain(1));
  EXPECT_GT(peak_memory_by_rank(s.graph)[0][MemoryClass::kOptimizer], Bytes(0));
  EXPECT_EQ(peak_memory_by_rank(s.graph)[1][MemoryClass::kOptimizer], Bytes(0));
}

// Two devices share 400 GB/s of host memory and have 32 GB/s to it. ZeRO 0: 4 P bytes down, 30 P
// bytes of AdamW, 2 P bytes up, one after another following the reduction.
TEST(Offload, TakesTheTimeOfCopiesAndOfTheProcessor) {
  Cluster cluster = cluster_of(1, 2);
  cluster.nodes.at("test-node").host =
      HostModel{.device_link = BytesPerSecond(32e9), .memory_bandwidth = BytesPerSecond(400e9)};
  Strategy s = strategy_of({.data = 2}, 1);
  const auto run = [&] {
    return simulated(plan_of(s, 3), gpt({.blocks = 3}), cluster, *make_device_cost_model(cluster));
  };
  const Simulated here = run();
  s.data_parallelism.offload_optimizer = true;
  const Simulated there = run();
  Ticks down, update, up;
  for (std::size_t i = 0; i < there.graph.tasks.size(); ++i) {
    const Task& task = there.graph.tasks[i];
    const Ticks duration = there.times.end[i] - there.times.start[i];
    if (task.rank != 0) continue;
    if (task.stream == Stream::kToHost) down += duration;
    if (task.stream == Stream::kHost) update += duration;
    if (task.stream == Stream::kFromHost) up += duration;
  }
  const double p = kGradients / 4;
  EXPECT_NEAR(microseconds(down), 4 * p / 32e9 * 1e6, 2e-6);
  EXPECT_NEAR(microseconds(update), 2 * 30 * p / 400e9 * 1e6, 2e-6);
  EXPECT_NEAR(microseconds(up), 2 * p / 32e9 * 1e6, 2e-6);
  EXPECT_GT(there.evaluation.step_time, here.evaluation.step_time);
  EXPECT_EQ(total(peak_memory_by_rank(here.graph)[0]) - total(peak_memory_by_rank(there.graph)[0]),
            Bytes(12 * static_cast<std::int64_t>(p)));
}

// ---- properties -----------------------------------------------------------------------------

Strategy random_strategy(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int> choices) {
    return *(choices.begin() + static_cast<std::ptrdiff_t>(random() % choices.size()));
  };
  const int pipeline = one_of({1, 2});
  const int chunks = pipeline > 1 ? one_of({1, 1, 2}) : 1;
  Strategy s = strategy_of({.data = one_of({2, 4, 8}),
                            .pipeline = pipeline,
                            .chunks = chunks,
                            .context = one_of({1, 1, 2}),
                            .tensor = one_of({1, 2})},
                           pipeline * one_of({1, 2, 3}));
  const std::vector<std::string> flat{"1f1b", "gpipe", "zb-h1"};
  if (chunks == 1) s.schedule = flat[random() % flat.size()];
  s.zero = one_of({0, 1, 2, 3});
  s.recompute.kind = one_of({0, 1}) == 0 ? RecomputeKind::kNone : RecomputeKind::kFull;
  DataParallelism& d = s.data_parallelism;
  if (one_of({0, 0, 1}) == 1) d.kind = DataParallelKind::kRing;
  if (s.zero < 3 && one_of({0, 1}) == 1)
    d.buckets = {BucketRule::kBytes, Bytes(one_of({1'000, 100'000, 1'000'000}))};
  const bool gathers = s.zero == 2 || (s.zero == 1 && d.buckets.rule != BucketRule::kNone);
  d.overlap_gather = gathers && one_of({0, 1}) == 1;
  d.prefetch = one_of({0, 1, 2, 5});
  d.reshard_after_forward = one_of({0, 1}) == 1;
  if (s.zero > 0) d.shard_ranks = one_of({0, 0, 2});
  d.offload_optimizer = one_of({0, 0, 1}) == 1;
  return s;
}

Cluster host_cluster(int nodes) {
  Cluster cluster = cluster_of(nodes, 4);
  cluster.nodes.at("test-node").host =
      HostModel{.device_link = BytesPerSecond(32e9), .memory_bandwidth = BytesPerSecond(400e9)};
  cluster.fabric.latency = Seconds(3e-6);
  cluster.nodes.at("test-node").local.latency = Seconds(1e-6);
  return cluster;
}

TEST(DataAxis, IsTheSameFoldedAndUnfoldedForRandomPlans) {
  const Cluster cluster = host_cluster(16);
  const ModelGraph model = gpt({.blocks = 8});
  const auto costs = make_device_cost_model(cluster);
  int tried = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    const Strategy s = random_strategy(random);
    const Plan plan = plan_of(s, 8);
    if (rank_count(s.degrees) > 4 && rank_count(s.degrees) % 4 != 0) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", zero " << s.zero << ", " << s.schedule
                                    << ", bucket " << to_text(s.data_parallelism.buckets));
    ASSERT_THAT(check_plan(plan, model, cluster), IsEmpty());
    const Simulated folded = simulated(plan, model, cluster, *costs);
    const Simulated all = simulated(plan, model, cluster, *costs, RankSet::kAll);
    EXPECT_EQ(folded.evaluation.step_time, all.evaluation.step_time);
    const std::size_t copies = all.graph.ranks.size() / folded.graph.ranks.size();
    for (std::size_t r = 0; r < all.graph.ranks.size(); ++r) {
      EXPECT_EQ(all.evaluation.ranks[r], folded.evaluation.ranks[r / copies]) << "rank " << r;
      EXPECT_EQ(all.evaluation.peak_memory[r], folded.evaluation.peak_memory[r / copies]);
    }
    ++tried;
  }
  EXPECT_GT(tried, 100);
}

// Per rank with P parameters, m micro-batches: gradients 4 P bytes once, or m times under ZeRO 2
// and 3; of the new weights 2 P (ZeRO 1 and 2), or between 2 P and 4 m P (ZeRO 3).
TEST(DataAxis, MovesWhatTheClosedFormsSay) {
  const Cluster cluster = host_cluster(16);
  const ModelGraph model = gpt({.blocks = 8});
  for (unsigned seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    Strategy s = random_strategy(random);
    s.data_parallelism.kind = DataParallelKind::kCollective;
    s.data_parallelism.shard_ranks = 0;
    if (rank_count(s.degrees) > 4 && rank_count(s.degrees) % 4 != 0) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", zero " << s.zero);
    Strategy plain = s;
    plain.zero = 0;
    plain.data_parallelism = {};
    const auto resident = lower(plan_of(plain, 8), model, cluster).ranks;
    const TaskGraph graph = lower(plan_of(s, 8), model, cluster);
    std::vector<std::int64_t> reduced(graph.ranks.size(), 0), gathered(graph.ranks.size(), 0);
    for (const Task& task : graph.tasks) {
      if (task.kind != TaskKind::kCollective) continue;
      const Collective& c = graph.works[task.work.index()].collective;
      if (c.parameters.count == 0) continue;
      const auto r = static_cast<std::size_t>(task.rank);
      if (c.kind == CollectiveKind::kAllReduce || c.kind == CollectiveKind::kReduceScatter)
        reduced[r] += c.bytes.value;
      if (c.kind == CollectiveKind::kAllGather) gathered[r] += c.bytes.value;
    }
    const std::int64_t m = microbatch_count(s);
    for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
      const std::int64_t gradients = resident[r].resident[MemoryClass::kGradients].value;
      const std::int64_t weights = resident[r].resident[MemoryClass::kWeights].value;
      EXPECT_EQ(reduced[r], s.zero >= 2 ? m * gradients : gradients);
      if (s.zero == 0) {
        EXPECT_EQ(gathered[r], 0);
      } else if (s.zero <= 2) {
        EXPECT_EQ(gathered[r], weights);
      } else {
        EXPECT_GE(gathered[r], weights);
        EXPECT_LE(gathered[r], 2 * m * weights);
      }
    }
  }
}

// With eight blocks on a rank, two units in flight need less memory than each ZeRO level saves.
TEST(DataAxis, NeedsLessMemoryAtEveryLevelOfZero) {
  const Cluster cluster = host_cluster(16);
  const ModelGraph model = gpt({.blocks = 16});
  for (const int pipeline : {1, 2})
    for (const int data : {4, 8})
      for (const int tensor : {1, 2})
        for (const bool reshard : {true, false}) {
          Strategy s = strategy_of({.data = data, .pipeline = pipeline, .tensor = tensor}, 4);
          s.data_parallelism.reshard_after_forward = reshard;
          std::vector<Bytes> peaks;
          for (s.zero = 0; s.zero <= (reshard ? 3 : 2); ++s.zero) {
            Bytes peak;
            for (const MemoryAmounts& rank :
                 peak_memory_by_rank(lower(plan_of(s, 16), model, cluster)))
              peak = std::max(peak, total(rank));
            peaks.push_back(peak);
          }
          for (std::size_t i = 1; i < peaks.size(); ++i)
            EXPECT_LT(peaks[i], peaks[i - 1]) << "level " << i << ", pp " << pipeline;
        }
}

}  // namespace
}  // namespace meshwright
