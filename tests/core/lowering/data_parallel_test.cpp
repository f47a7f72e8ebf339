// Data parallelism in a task graph: which collectives run, how often, and the memory they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "core/lowering/lowering_context.hpp"
#include "core/lowering/lowering_pass.hpp"
#include "core/lowering/units.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/placement.hpp"
#include "core/schedule/schedule.hpp"
#include "tests/core/lowering/data_parallel_graphs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

// ---- buckets --------------------------------------------------------------------------------

// 100,000 bytes are 25,000 elements in fp32. A block is norm 128, q, k, v, out 4,096 + 64 each,
// norm 128, up 16,384 + 256, down 16,384 + 64. In backward order:
//   1  head 32,768
//   2  its norm 128, block 3: down 16,448, up 256 + 16,384
//   3  block 3: norm 128, out, v, k, q 16,640, norm 128; block 2: down 16,448
//   4  block 2: up 16,640, norm 128, out 4,160, v 64 + 4,096
//   5  block 2: k, q 8,320, norm 128; block 1: down 16,448, up's bias 256
//   6  block 1: up 16,384, norm 128, out, v 8,320, k 64 + 4,096
//   7  block 1: q 4,160, norm 128; positions 8,192, words 32,768
TEST(GradientBuckets, CloseInBackwardOrderWhenFull) {
  Strategy s = data_strategy(2, 0);
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(100'000)};
  const Plan plan = plan_of(s, 3);
  const ModelGraph model = gpt({.blocks = 3});
  const Cluster cluster = cluster_of(4, 2);
  LoweringContext context(plan, model, cluster);
  run_passes(lowering_passes_until("units"), context);
  std::vector<std::int64_t> counts, firsts;
  std::vector<int> units;
  for (const GradientBucket& bucket : context.units[0].buckets) {
    counts.push_back(bucket.count);
    firsts.push_back(bucket.first);
    units.push_back(bucket.unit);
  }
  EXPECT_THAT(counts, ElementsAre(32'768, 33'216, 33'344, 25'088, 25'152, 28'992, 45'248));
  EXPECT_THAT(units, ElementsAre(4, 3, 2, 2, 1, 1, 0));
  EXPECT_EQ(firsts.front(), kAll - 32'768);
  EXPECT_EQ(firsts.back(), 0);
}

// 1 MiB holds all 173,824 * 4 bytes of two blocks; PyTorch's first bucket takes them all.
// Megatron's smallest has 40 million elements.
TEST(GradientBuckets, FollowTheirRules) {
  const auto buckets = [](BucketRule rule, const std::vector<std::int64_t>& layers) {
    std::vector<std::vector<LocalParameter>> list;
    for (const std::int64_t count : layers) list.push_back({{count, false}});
    Strategy s = data_strategy(2, 0);
    s.data_parallelism.buckets.rule = rule;
    std::vector<std::int64_t> counts;
    for (const GradientBucket& b :
         cut_into_units(list, std::nullopt, s, job_groups_of(s, cluster_of(1, 2))).buckets)
      counts.push_back(b.count);
    return counts;
  };
  // 1 MiB = 262,144 elements, 25 MiB = 6,553,600.
  EXPECT_THAT(buckets(BucketRule::kPyTorch, {4'000'000, 4'000'000, 4'000'000, 262'144}),
              ElementsAre(262'144, 8'000'000, 4'000'000));
  EXPECT_THAT(buckets(BucketRule::kMegatron, {30'000'000, 30'000'000, 30'000'000, 9'999'999}),
              ElementsAre(69'999'999, 30'000'000));
}

// Two micro-batches: the first backward is one task, the second one a task per unit, and every
// bucket waits for the task of its unit.
TEST(GradientBuckets, SplitTheLastBackwardOnly) {
  Strategy s = data_strategy(2, 0, 2);
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(100'000)};
  const TaskGraph graph = lowered(s);
  std::vector<std::int32_t> last_backward;
  int first_backward = 0;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].kind != TaskKind::kBackward) continue;
    if (graph.tasks[i].microbatch == 0)
      ++first_backward;
    else
      last_backward.push_back(static_cast<std::int32_t>(i));
  }
  EXPECT_EQ(first_backward, 1);
  ASSERT_EQ(last_backward.size(), 5u);  // head, three blocks, tables
  std::vector<std::int64_t> waits;      // for which of the five
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.kind != TaskKind::kCollective || task.stage < 0) continue;
    const auto before = graph.dependencies_of(TaskId(i));
    ASSERT_EQ(before.size(), 1u);
    const auto at = std::find(last_backward.begin(), last_backward.end(), before[0].value);
    waits.push_back(at - last_backward.begin());
  }
  EXPECT_THAT(waits, ElementsAre(0, 1, 2, 2, 3, 3, 4));
  EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kAllReduce)), 4 * kAll + 4);  // and norm
}

// Split backward passes: a weight gradient pass completes a bucket.
TEST(GradientBuckets, WaitForSplitWeightGradients) {
  Strategy s = strategy_of({.data = 2, .pipeline = 2}, 4);
  s.schedule = "zb-h1";
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(100'000)};
  const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(2, 2));
  EXPECT_THAT(check_task_graph(graph), IsEmpty());
  int reductions = 0;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].kind != TaskKind::kCollective || graph.tasks[i].stage < 0) continue;
    for (const TaskId before : graph.dependencies_of(TaskId(i))) {
      EXPECT_EQ(graph.tasks[before.index()].kind, TaskKind::kBackwardWeight);
      ++reductions;
    }
  }
  EXPECT_GT(reductions, 4);
}

// ---- ZeRO -----------------------------------------------------------------------------------

// Over four ranks, in bytes per parameter: weights 2, gradients 4, optimizer 12.
TEST(Zero, ShardsOneMoreMemoryClassPerLevel) {
  const auto resident = [](int zero) { return lowered(data_strategy(4, zero)).ranks[0].resident; };
  const auto bytes = [&](int zero) {
    const MemoryAmounts held = resident(zero);
    return std::vector<std::int64_t>{held[MemoryClass::kWeights].value,
                                     held[MemoryClass::kGradients].value,
                                     held[MemoryClass::kOptimizer].value};
  };
  EXPECT_THAT(bytes(0), ElementsAre(2 * kAll, 4 * kAll, 12 * kAll));
  EXPECT_THAT(bytes(1), ElementsAre(2 * kAll, 4 * kAll, 3 * kAll));
  EXPECT_THAT(bytes(2), ElementsAre(2 * kAll, kAll, 3 * kAll));
  EXPECT_THAT(bytes(3), ElementsAre(kAll / 2, kAll, 3 * kAll));
}

// ZeRO 2 reduces with every micro-batch and gathers once; two gradient buffers of neighboring
// layers: two blocks are the largest.
TEST(Zero, ReducesEveryMicrobatchAtLevel2) {
  const TaskGraph graph = lowered(data_strategy(4, 2, 3));
  EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kReduceScatter)), 3 * 4 * kAll);
  EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kAllGather)), 2 * kAll);
  EXPECT_EQ(peak_held(graph, MemoryClass::kGradients), 2 * 4 * kBlock);
  EXPECT_EQ(peak_held(graph, MemoryClass::kCommunication), 0);
}

// One layer each: the reduction of a layer must end before the layer after the next one starts.
TEST(Zero, HasTwoGradientBuffers) {
  const TaskGraph graph = lowered(data_strategy(4, 2));
  std::vector<std::size_t> passes, reductions;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.kind == TaskKind::kBackward) passes.push_back(i);
    if (task.kind == TaskKind::kCollective && task.microbatch == 0) reductions.push_back(i);
  }
  ASSERT_EQ(passes.size(), 5u);
  ASSERT_EQ(reductions.size(), 5u);
  for (std::size_t i = 2; i < passes.size(); ++i)
    EXPECT_THAT(graph.dependencies_of(TaskId(passes[i])), ElementsAre(TaskId(reductions[i - 2])));
}

// FSDP, prefetch 1, uses E 1 2 3 H | H 3 2 1 E: the head stays between its passes, and under two
// micro-batches the tables between the first backward and the second forward. So m micro-batches
// gather 2 m P - m H - (m - 1) E elements. At most two blocks are there at a time.
TEST(FullySharded, GathersEveryUnitForEveryPass) {
  for (const std::int64_t m : {1, 2, 3}) {
    const TaskGraph graph = lowered(data_strategy(4, 3, m));
    EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kAllGather)),
              2 * (2 * m * kAll - m * kHead - (m - 1) * kTables));
    EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kReduceScatter)), m * 4 * kAll);
    EXPECT_EQ(peak_held(graph, MemoryClass::kCommunication), 2 * 2 * kBlock);
    EXPECT_EQ(peak_held(graph, MemoryClass::kGradients), 2 * 4 * kBlock);
  }
}

// If parameters are held from forward to backward, everything is gathered once.
TEST(FullySharded, GathersOncePerMicrobatchWithoutResharding) {
  Strategy s = data_strategy(4, 3, 2);
  s.data_parallelism.reshard_after_forward = false;
  const TaskGraph graph = lowered(s);
  EXPECT_EQ(bytes_of(collectives_of(graph, CollectiveKind::kAllGather)), 2 * (2 * kAll - kTables));
  EXPECT_EQ(peak_held(graph, MemoryClass::kCommunication), 2 * kAll);
}

// Prefetch d: the gather of use i starts after use i - d - 1 has ended, so d + 1 blocks are held;
// with 0 the gather never overlaps a pass.
TEST(FullySharded, HoldsOneUnitMoreForEachOneGatheredAhead) {
  const auto held = [](int prefetch) {
    Strategy s = strategy_of({.data = 4}, 1);
    s.zero = 3;
    s.data_parallelism.prefetch = prefetch;
    const TaskGraph graph = lower(plan_of(s, 8), gpt({.blocks = 8}), cluster_of(4, 2));
    return peak_held(graph, MemoryClass::kCommunication);
  };
  for (const int prefetch : {0, 1, 2, 3}) EXPECT_EQ(held(prefetch), (prefetch + 1) * 2 * kBlock);
}

/// Passes and collectives of rank 0 in the order of the graph: "F", "B" a pass of a unit, "G" a
/// gather, "R" a reduce-scatter, "A" an all-reduce, "N" the norm, with the elements in thousands of
/// the parameters, "U" the update. Collectives outside Stream::kData are in parentheses.
std::string order_of(const TaskGraph& graph) {
  std::string text;
  for (const Task& task : graph.tasks) {
    const Collective& c = graph.works[task.work.index()].collective;
    if (task.kind != TaskKind::kCollective) {
      text += std::string(name_of(task.kind)).substr(0, 1) + " ";
      continue;
    }
    std::string name = c.kind == CollectiveKind::kAllGather       ? "G"
                       : c.kind == CollectiveKind::kReduceScatter ? "R"
                       : c.parameters.part >= 0                   ? "A"
                                                                  : "N";
    if (c.parameters.part >= 0) name += std::to_string(c.parameters.count / 1000);
    text += task.stream == Stream::kData ? name + " " : "(" + name + ") ";
  }
  return text;
}

// One block (49 thousand parameters) between tables (40) and head (32). A gather is issued when the
// use two before its own has ended, a reduction when its own has; reductions first, as FSDP issues
// them. So the gather of the tables for the backward pass stands between the reductions of head and
// block, of which the latter starts later than the gather.
TEST(FullySharded, IssuesCollectivesInTheOrderInWhichTheyCanStart) {
  const auto order = [](int prefetch) {
    Strategy s = data_strategy(4, 3);
    s.data_parallelism.prefetch = prefetch;
    return order_of(lower(plan_of(s, 1), gpt({.blocks = 1}), cluster_of(4, 2)));
  };
  EXPECT_EQ(order(1), "G40 G49 F G32 F F G49 B R32 G40 B R49 B R40 N o ");
  EXPECT_EQ(order(0), "G40 F G49 F G32 F B R32 G49 B R49 G40 B R40 N o ");
}

// At most 80,000 parameters at a time (DeepSpeed's stage3_max_live_parameters): the head is
// gathered next to the tables' or the block's pass only if both fit.
TEST(FullySharded, PrefetchesWithinTheLimitOfTheTrainer) {
  const auto order = [](std::int64_t most) {
    return order_of(lower(plan_of(data_strategy(4, 3), 1), gpt({.blocks = 1}), cluster_of(4, 2),
                          {.memory = {.most_gathered_parameters = most}}));
  };
  EXPECT_EQ(order(kTables + kBlock), order(0));
  EXPECT_EQ(order(kTables + kBlock - 1), "G40 F G49 G32 F F G49 B R32 B R49 G40 B R40 N o ");
  EXPECT_EQ(order(kBlock), "G40 F G49 F G32 F B R32 G49 B R49 G40 B R40 N o ");
}

// Inside nodes the shard groups use other links than the all-reduce across them, which follows the
// reduce-scatter of the same unit. Shard groups of two nodes share their ports with it.
TEST(HybridSharding, RunsBesideReductionsAcrossGroupsOnOtherLinks) {
  const auto graph_of = [](int shard_ranks) {
    Strategy s = data_strategy(8, 3);
    s.data_parallelism.shard_ranks = shard_ranks;
    return lower(plan_of(s, 1), gpt({.blocks = 1}), cluster_of(4, 2));
  };
  const TaskGraph inside = graph_of(2);
  EXPECT_EQ(order_of(inside),
            "(G40) (G49) F (G32) F F (G49) B (R32) A16 (G40) B (R49) A24 B (R40) A20 N o ");
  int sums = 0;
  for (std::size_t i = 0; i < inside.tasks.size(); ++i) {
    const Collective& c = inside.works[inside.tasks[i].work.index()].collective;
    if (c.kind != CollectiveKind::kAllReduce || c.parameters.part < 0) continue;
    EXPECT_THAT(inside.dependencies_of(TaskId(i)), testing::Contains(TaskId(i - 1)));
    ++sums;
  }
  EXPECT_EQ(sums, 3);
  EXPECT_EQ(order_of(graph_of(4)), "G40 G49 F G32 F F G49 B R32 A8 G40 B R49 A12 B R40 A10 N o ");
}

// Eight ranks on four nodes of two, sharded inside nodes: reduce-scatter of 4 P bytes over 2 ranks
// with each of two micro-batches, then once an all-reduce of a half over the 4 nodes.
TEST(HybridSharding, AllReducesShardsAcrossGroupsOnce) {
  Strategy s = data_strategy(8, 3, 2);
  s.data_parallelism.shard_ranks = 2;
  const TaskGraph graph = lowered(s);
  const auto scatters = collectives_of(graph, CollectiveKind::kReduceScatter);
  auto sums = collectives_of(graph, CollectiveKind::kAllReduce);
  sums.pop_back();  // the norm
  EXPECT_EQ(bytes_of(scatters), 2 * 4 * kAll);
  EXPECT_EQ(scatters.front().group, (GroupShape{.ranks = 2, .nodes = 1, .groups_per_node = 1}));
  EXPECT_EQ(bytes_of(sums), 4 * kAll / 2);
  EXPECT_EQ(sums.front().group, (GroupShape{.ranks = 4, .nodes = 4, .groups_per_node = 2}));
  EXPECT_EQ(graph.ranks[0].resident[MemoryClass::kOptimizer], Bytes(12 * kAll / 2));

  // Unfolded, the first shard group is ranks 0 and 1, the first group across is 0, 2, 4, 6.
  const TaskGraph all = lowered(s, RankSet::kAll);
  std::map<CollectiveKind, std::vector<int>> first;
  for (const CollectiveMembers& members : all.collectives) {
    const auto begin = static_cast<std::size_t>(members.first);
    const CollectiveKind kind = all.works[all.tasks[begin].work.index()].collective.kind;
    if (first.contains(kind)) continue;
    for (std::size_t i = begin; i < begin + static_cast<std::size_t>(members.count); ++i)
      first[kind].push_back(all.tasks[i].rank);
  }
  EXPECT_THAT(first[CollectiveKind::kReduceScatter], ElementsAre(0, 1));
  EXPECT_THAT(first[CollectiveKind::kAllReduce], ElementsAre(0, 2, 4, 6));
}

// ---- without buckets ------------------------------------------------------------------------

// Interleaved, two chunks on each of two ranks: without buckets, the gradients of both chunks are
// reduced after the rank's last backward pass, which is of its first chunk (stages 0 and 1). With
// buckets, those of the second chunk (stages 2 and 3) follow their own last backward pass.
TEST(DataAxis, ReducesAfterTheLastBackwardOfTheRankWithoutBuckets) {
  Strategy s = strategy_of({.data = 2, .pipeline = 2, .chunks = 2}, 4);
  for (const bool buckets : {false, true}) {
    if (buckets) s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(1 << 30)};
    const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(1, 4));
    std::map<int, int> reduced_after;  // stage of the reduction -> stage of the pass before it
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      const Task& task = graph.tasks[i];
      if (task.stream != Stream::kData || task.stage < 0) continue;
      for (const TaskId before : graph.dependencies_of(TaskId(i)))
        reduced_after[task.stage] = graph.tasks[before.index()].stage;
    }
    const std::map<int, int> expected = buckets
                                            ? std::map<int, int>{{0, 0}, {1, 1}, {2, 2}, {3, 3}}
                                            : std::map<int, int>{{0, 0}, {1, 1}, {2, 0}, {3, 1}};
    EXPECT_EQ(reduced_after, expected) << buckets;
  }
}

// ---- every schedule -------------------------------------------------------------------------

// Includes schedules with two replicas of each part, where both complete a bucket, and schedules
// with overlapped passes.
TEST(DataAxis, MakesAValidGraphOfEveryScheduleThatAcceptsThePlan) {
  const ModelGraph model = gpt({.blocks = 16, .tied = true});
  const Cluster cluster = cluster_of(2, 4);
  int lowered_plans = 0;
  for (const ScheduleRule& rule : schedule_rules())
    for (const int chunks : {1, 2})
      for (const int zero : {0, 1, 2, 3}) {
        Strategy s = strategy_of({.data = 2, .pipeline = 4, .chunks = chunks}, 8);
        s.schedule = std::string(rule.name);
        s.zero = zero;
        if (zero < 3) s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(100'000)};
        s.data_parallelism.overlap_gather = zero == 1;
        const ScheduleRequest request = schedule_request_of(s);
        if (rule.problem(request)) continue;
        const Plan plan = even_plan(s, 16, part_count(rule.placement(request)));
        if (!check_plan(plan, model, cluster).empty()) continue;
        SCOPED_TRACE(testing::Message() << s.schedule << ", zero " << zero);
        EXPECT_NO_THROW(lower(plan, model, cluster, {.check_each_pass = true}));
        EXPECT_NO_THROW(
            lower(plan, model, cluster, {.ranks = RankSet::kAll, .check_each_pass = true}));
        ++lowered_plans;
      }
  EXPECT_GT(lowered_plans, 40);
}

}  // namespace
}  // namespace meshwright
