// Results of single lowering passes: collectives, recomputation, memory, the end of the step.
#include "core/lowering/lower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/operators/attention.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/operators/operators.hpp"
#include "core/operators/saved_activations.hpp"
#include "core/plan/job_groups.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

/// Collectives inside the parts of one name, or of all parts.
std::vector<Collective> inside(const TaskGraph& graph, std::string_view part_name = {}) {
  std::vector<Collective> found;
  for (const WorkPart& part : graph.parts) {
    if (!part_name.empty() && part.name != part_name) continue;
    for (const Step& step : part.steps)
      if (const auto* c = std::get_if<Collective>(&step)) found.push_back(*c);
  }
  return found;
}

std::vector<std::string> collectives_in(const TaskGraph& graph, std::string_view part_name) {
  std::vector<std::string> names;
  for (const Collective& c : inside(graph, part_name))
    names.push_back(std::string(name_of(c.axis)) + " " + std::string(name_of(c.kind)));
  return names;
}

std::int64_t count_kind(const TaskGraph& graph, TaskKind kind) {
  return std::count_if(graph.tasks.begin(), graph.tasks.end(),
                       [kind](const Task& task) { return task.kind == kind; });
}

// ---- collectives from sharding --------------------------------------------------------------

TaskGraph lower_dense(ParallelDegrees degrees, bool sequence_parallel) {
  Strategy s = strategy_of(degrees, 1);
  s.sequence_parallel = sequence_parallel;
  return lower(plan_of(s, 2), gpt({.blocks = 2}), cluster_of(2, 4));
}

TEST(TensorParallelism, ReducesTwiceForwardAndTwiceBackwardInABlock) {
  const TaskGraph graph = lower_dense({.tensor = 2}, false);
  EXPECT_THAT(collectives_in(graph, "block.F"), ElementsAre("tp all-reduce", "tp all-reduce"));
  EXPECT_THAT(collectives_in(graph, "block.B"), ElementsAre("tp all-reduce", "tp all-reduce"));
  EXPECT_THAT(collectives_in(graph, "block.W"), IsEmpty());
  EXPECT_THAT(collectives_in(graph, "embedding.F"), ElementsAre("tp all-reduce"));
  EXPECT_THAT(collectives_in(graph, "head.F"), ElementsAre("tp all-reduce", "tp all-reduce"));
  EXPECT_THAT(collectives_in(graph, "head.B"), ElementsAre("tp all-reduce"));
}

TEST(SequenceParallelism, GathersAndScattersInsteadAndGathersOnceMoreForWeights) {
  const TaskGraph graph = lower_dense({.tensor = 2}, true);
  EXPECT_THAT(collectives_in(graph, "block.F"), ElementsAre("tp all-gather", "tp reduce-scatter",
                                                            "tp all-gather", "tp reduce-scatter"));
  EXPECT_THAT(collectives_in(graph, "block.I"), ElementsAre("tp all-gather", "tp reduce-scatter",
                                                            "tp all-gather", "tp reduce-scatter"));
  EXPECT_THAT(collectives_in(graph, "block.W"), ElementsAre("tp all-gather", "tp all-gather"));
  EXPECT_EQ(collectives_in(graph, "block.B").size(), 6u);
}

// Whole buffers: 2 * 128 tokens * 64 * 2 bytes.
TEST(TensorParallelism, CountsWholeBuffers) {
  for (const bool sequence_parallel : {false, true}) {
    const TaskGraph graph = lower_dense({.tensor = 2}, sequence_parallel);
    for (const Collective& c : inside(graph, "block.B")) {
      EXPECT_EQ(c.bytes, Bytes(32'768));
      EXPECT_EQ(c.group, (GroupShape{.ranks = 2, .nodes = 1, .groups_per_node = 1}));
    }
  }
}

// The tensor of a collective belongs to its source operator, because executors look it up there.
TEST(TensorParallelism, NamesTheCommunicatedTensorAndItsOperator) {
  const ModelGraph model = gpt({.blocks = 2});
  const TaskGraph graph = lower_dense({.tensor = 2}, true);
  int named = 0;
  for (const WorkPart& part : graph.parts)
    for (const Step& step : part.steps) {
      const auto* c = std::get_if<Collective>(&step);
      if (c == nullptr) continue;
      ASSERT_GE(c->source.value, 0) << part.name;
      ASSERT_GE(c->tensor.value, 0) << part.name;
      const Operator& op = model.operators[c->source.index()];
      const bool is_input = std::count(op.inputs.begin(), op.inputs.end(), c->tensor) == 1;
      const bool is_output = std::count(op.outputs.begin(), op.outputs.end(), c->tensor) == 1;
      EXPECT_NE(is_input, is_output) << op.name;
      const bool gathers = c->kind == CollectiveKind::kAllGather;
      if (c->phase == Phase::kForward) {
        EXPECT_EQ(is_input, gathers || op.name == "loss") << op.name;
      }
      ++named;
    }
  EXPECT_GT(named, 20);
}

TEST(ContextParallelism, GathersKeysAndValuesAndScattersTheirGradients) {
  const TaskGraph graph = lower_dense({.context = 2}, false);
  EXPECT_THAT(collectives_in(graph, "block.F"), ElementsAre("cp all-gather"));
  EXPECT_THAT(collectives_in(graph, "block.B"), ElementsAre("cp all-gather", "cp reduce-scatter"));
  for (const Collective& c : inside(graph))
    EXPECT_EQ(c.bytes, Bytes(2 * 128 * (64 + 64) * 2));  // K and V of the whole sequence
}

// 256 tokens * 2 experts * 64 wide * 2 bytes = 65,536; half of it per tensor rank.
TEST(ExpertParallelism, SendsTokensToTheirExpertsAndBack) {
  const auto graph_of = [](ParallelDegrees degrees) {
    return lower(plan_of(strategy_of(degrees, 1), 2), mixture(2), cluster_of(2, 4));
  };
  const TaskGraph plain = graph_of({.data = 4, .expert = 4});
  EXPECT_THAT(collectives_in(plain, "block.F"), ElementsAre("ep all-to-all", "ep all-to-all"));
  EXPECT_THAT(collectives_in(plain, "block.B"), ElementsAre("ep all-to-all", "ep all-to-all"));
  for (const Collective& c : inside(plain)) EXPECT_EQ(c.bytes, Bytes(65'536));

  const TaskGraph cut = graph_of({.data = 2, .tensor = 2, .expert = 2, .expert_tensor = 2});
  EXPECT_THAT(collectives_in(cut, "block.F"),
              ElementsAre("ep all-to-all", "ep all-gather", "ep reduce-scatter", "ep all-to-all",
                          "tp all-gather"));
  for (const Collective& c : inside(cut, "block.F"))
    if (c.kind == CollectiveKind::kAllToAll) {
      EXPECT_EQ(c.bytes, Bytes(32'768));
    }
}

// ---- recomputation --------------------------------------------------------------------------

std::vector<std::string> backward_parts(const Recompute& recompute, AttentionAlgorithm attention) {
  Strategy s = strategy_of({}, 1);
  s.recompute = recompute;
  s.attention = attention;
  const TaskGraph graph = lower(plan_of(s, 2), gpt({.blocks = 2}), cluster_of(1, 4));
  std::vector<std::string> names;
  for (const WorkPartUse& use : graph.works[1].parts) {
    const WorkPart& part = graph.parts[static_cast<std::size_t>(use.part)];
    EXPECT_EQ(part.recompute, part.name == "block.recompute");
    for (int i = 0; i < use.count; ++i) names.push_back(part.name);
  }
  return names;
}

TEST(Recompute, RunsEachForwardAgainBeforeItsBackward) {
  constexpr auto kFlash = AttentionAlgorithm::kFlash;
  EXPECT_THAT(backward_parts({RecomputeKind::kNone, 0}, kFlash),
              ElementsAre("head.B", "block.B", "block.B", "embedding.B"));
  EXPECT_THAT(backward_parts({RecomputeKind::kFull, 0}, kFlash),
              ElementsAre("head.B", "block.recompute", "block.B", "block.recompute", "block.B",
                          "embedding.B"));
  EXPECT_THAT(backward_parts({RecomputeKind::kBlocks, 1}, kFlash),
              ElementsAre("head.B", "block.B", "block.recompute", "block.B", "embedding.B"));
}

TEST(Recompute, SelectivelyRepeatsStandardAttentionOnly) {
  const Recompute selective{RecomputeKind::kSelective, 0};
  EXPECT_EQ(backward_parts(selective, AttentionAlgorithm::kFlash).size(), 4u);
  EXPECT_EQ(backward_parts(selective, AttentionAlgorithm::kStandard).size(), 6u);
}

// ---- memory ---------------------------------------------------------------------------------

// One rank: 18 bytes per parameter. 3 blocks of 49,984, tables 640 * 64, head 128 + 512 * 64.
TEST(ResidentMemory, Is18BytesPerParameterInMixedPrecision) {
  const std::int64_t parameters = 3 * 49'984 + 640 * 64 + 128 + 512 * 64;
  const Plan plan = plan_of(strategy_of({}, 1), 3);
  const MemoryAmounts held = lower(plan, gpt({.blocks = 3}), cluster_of(1, 4)).ranks[0].resident;
  EXPECT_EQ(held[MemoryClass::kWeights], Bytes(2 * parameters));
  EXPECT_EQ(held[MemoryClass::kGradients], Bytes(4 * parameters));
  EXPECT_EQ(held[MemoryClass::kOptimizer], Bytes(12 * parameters));
  EXPECT_EQ(held[MemoryClass::kCommunication], Bytes(0));
  EXPECT_EQ(held[MemoryClass::kReserved], Bytes(std::int64_t{1} << 30));
}

TEST(ResidentMemory, DividesOptimizerStateUnderZero1) {
  Strategy s = strategy_of({.data = 2, .context = 2}, 1);
  s.zero = 1;
  const std::int64_t parameters = 3 * 49'984 + 640 * 64 + 128 + 512 * 64;  // divisible by 4
  const MemoryAmounts held =
      lower(plan_of(s, 3), gpt({.blocks = 3}), cluster_of(1, 4)).ranks[0].resident;
  EXPECT_EQ(held[MemoryClass::kOptimizer], Bytes(3 * parameters));
  EXPECT_EQ(held[MemoryClass::kGradients], Bytes(4 * parameters));
}

// The head's device holds a copy of a tied table: 512 * 64 elements more than its own norm.
TEST(ResidentMemory, HoldsATiedTableOnBothEnds) {
  const Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 2);
  const TaskGraph graph = lower(plan, gpt({.blocks = 2, .tied = true}), cluster_of(1, 4));
  EXPECT_EQ(graph.ranks[0].resident[MemoryClass::kWeights], Bytes(2 * (49'984 + 640 * 64)));
  EXPECT_EQ(graph.ranks[1].resident[MemoryClass::kWeights], Bytes(2 * (49'984 + 512 * 64 + 128)));
}

// 1F1B: stage s of p holds min(m, p - s) micro-batches of its blocks at most.
TEST(ActivationMemory, MatchesTheGuaranteeOf1F1B) {
  const ModelGraph model = gpt({.blocks = 4});
  const TaskGraph graph =
      lower(plan_of(strategy_of({.pipeline = 4}, 8), 4), model, cluster_of(1, 4));
  std::vector<std::int64_t> held(4, 0), peak(4, 0);
  for (const Task& task : graph.tasks) {
    const auto rank = static_cast<std::size_t>(task.rank);
    const Work& work = graph.works[task.work.index()];
    held[rank] += work.acquired[MemoryClass::kActivations].value;
    peak[rank] = std::max(peak[rank], held[rank]);
    held[rank] -= work.released[MemoryClass::kActivations].value;
  }
  const std::int64_t block =
      kept_activation_bytes(model, LayerId(1), shard_shape_of(strategy_of({}, 1)), {}).value;
  EXPECT_EQ(peak[1], 3 * block);
  EXPECT_EQ(peak[2], 2 * block);
  EXPECT_GT(peak[0], 4 * block);  // and the embedding's masks
  EXPECT_GT(peak[3], block);      // and the head's inputs
}

// ---- end of the step ------------------------------------------------------------------------

std::vector<std::string> step_end(const Strategy& s, bool tied) {
  const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4, .tied = tied}), cluster_of(2, 4));
  std::vector<std::string> names;
  for (const Task& task : graph.tasks) {
    if (task.rank != 0) continue;
    if (task.kind == TaskKind::kOptimizer) names.push_back("optimizer");
    if (task.kind != TaskKind::kCollective) continue;
    const Collective& c = graph.works[task.work.index()].collective;
    names.push_back(std::string(name_of(c.axis)) + " " + std::string(name_of(c.kind)));
  }
  return names;
}

TEST(StepEnd, ReducesGradientsThenNormThenUpdates) {
  EXPECT_THAT(step_end(strategy_of({}, 1), false), ElementsAre("optimizer"));
  EXPECT_THAT(step_end(strategy_of({.data = 2}, 1), false),
              ElementsAre("dp all-reduce", "dp all-reduce", "optimizer"));
  Strategy zero = strategy_of({.data = 2}, 1);
  zero.zero = 1;
  EXPECT_THAT(step_end(zero, false),
              ElementsAre("dp reduce-scatter", "dp all-reduce", "optimizer", "dp all-gather"));
  EXPECT_THAT(step_end(strategy_of({.data = 2, .pipeline = 2}, 2), true),
              ElementsAre("dp all-reduce", "pp all-reduce", "dp all-reduce", "optimizer"));
}

// The table of 512 x 64 elements is reduced apart from the other gradients of its part, so that its
// two holders shard it alike and sum its gradients in the same order: in buckets, too.
TEST(StepEnd, ShardsBothTablesAlike) {
  constexpr std::int64_t kTable = 512 * 64;
  Strategy s = strategy_of({.data = 4, .pipeline = 2}, 2);
  s.zero = 1;
  EXPECT_THAT(step_end(s, true),
              ElementsAre("dp reduce-scatter", "dp reduce-scatter", "pp all-reduce",
                          "dp all-reduce", "optimizer", "dp all-gather", "dp all-gather"));
  for (const std::int64_t bucket : {0, 40'000, 1 << 30}) {
    if (bucket > 0) s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(bucket)};
    const TaskGraph graph =
        lower(plan_of(s, 4), gpt({.blocks = 4, .tied = true}), cluster_of(2, 4));
    std::set<int> parts;
    for (const Work& work : graph.works) {
      const ParameterRange& range = work.collective.parameters;
      if (work.collective.kind == CollectiveKind::kReduceScatter && range.count == kTable)
        parts.insert(range.part);
    }
    EXPECT_THAT(parts, ElementsAre(0, 1)) << bucket;
  }
}

// The host updates what all reductions and the tied table have completed.
TEST(StepEnd, CopiesGradientsToTheHostAfterTheirLastSum) {
  Strategy s = strategy_of({.data = 2, .pipeline = 2}, 2);
  s.zero = 1;
  s.data_parallelism.offload_optimizer = true;
  Cluster cluster = cluster_of(2, 4);
  cluster.nodes.at("test-node").host =
      HostModel{.device_link = BytesPerSecond(1e9), .memory_bandwidth = BytesPerSecond(1e9)};
  const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4, .tied = true}), cluster);
  int copies = 0;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    if (graph.tasks[t].stream != Stream::kToHost) continue;
    ++copies;
    for (const TaskId before : graph.dependencies_of(TaskId(t)))
      EXPECT_EQ(axis_of(graph, graph.tasks[before.index()]), Axis::kPipeline);
  }
  EXPECT_GT(copies, 0);
}

TEST(StepEnd, ReducesLaterChunksFirstIfReductionsOverlap) {
  Strategy s = strategy_of({.data = 2, .pipeline = 2, .chunks = 2}, 2);
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(1 << 30)};
  const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(2, 4));
  std::vector<int> stages;
  for (const Task& task : graph.tasks)
    if (task.kind == TaskKind::kCollective && task.rank == 0 && task.stage >= 0)
      stages.push_back(task.stage);
  EXPECT_THAT(stages, ElementsAre(2, 0));
}

TEST(StepEnd, SpreadsTheNormOverAllRanks) {
  const Plan plan = plan_of(strategy_of({.data = 4, .pipeline = 2}, 2), 4);
  const TaskGraph graph = lower(plan, gpt({.blocks = 4}), cluster_of(2, 4));
  const Task& norm = graph.tasks[static_cast<std::size_t>(graph.collectives.back().first)];
  EXPECT_EQ(graph.works[norm.work.index()].collective.group,
            (GroupShape{.ranks = 8, .nodes = 2, .groups_per_node = 1}));
  EXPECT_EQ(count_kind(lower(plan, gpt({.blocks = 4}), cluster_of(2, 4), {.ranks = RankSet::kAll}),
                       TaskKind::kOptimizer),
            8);
}

/// Kernel of the update of the first rank.
const Kernel& update_kernel(const TaskGraph& graph) {
  const auto update = std::find_if(graph.works.begin(), graph.works.end(), [](const Work& work) {
    return work.kind == TaskKind::kOptimizer;
  });
  const WorkPart& part = graph.parts[static_cast<std::size_t>(update->parts.front().part)];
  return std::get<Kernel>(part.steps.front());
}

// One rank, bf16, N parameters: norm 4 + clip 8 + zeroing 4, AdamW reads the gradient 4, reads and
// writes master 8 and moments 16, writes the weight 2: 46 N bytes. ZeRO-1 over two replicas updates
// half of them but still zeroes all gradients: 42 N / 2 + 4 N.
TEST(StepEnd, CountsEveryPassOverTheGradients) {
  const ModelGraph model = gpt({.blocks = 2});
  Strategy alone = strategy_of({}, 1);
  const Kernel whole = update_kernel(lower(plan_of(alone, 2), model, cluster_of(1, 1)));
  EXPECT_EQ(whole.memory_traffic, Bytes(46 * whole.m));
  Strategy sharded = strategy_of({.data = 2}, 1);
  sharded.zero = 1;
  const Kernel half = update_kernel(lower(plan_of(sharded, 2), model, cluster_of(1, 2)));
  EXPECT_NEAR(static_cast<double>(half.m), static_cast<double>(whole.m) / 2, 2);  // rounded up
  EXPECT_EQ(half.memory_traffic, Bytes(42 * half.m + 4 * whole.m));
}

// ---- groups ---------------------------------------------------------------------------------

// Parts 0 and 3 of a bidirectional pipeline are on devices 0 and 3; ranks 2 d and 2 d + 1 on device
// d.
TEST(GroupShape, JoinsReplicasOfAPart) {
  const Strategy s = strategy_of({.data = 2, .pipeline = 4}, 4);
  const JobGroups apart = job_groups_of(s, cluster_of(2, 4));
  EXPECT_EQ(joined(apart, apart.dense_data, 2), (GroupShape{4, 2, 2}));
  const JobGroups together = job_groups_of(s, cluster_of(1, 8));
  EXPECT_EQ(joined(together, together.dense_data, 2), (GroupShape{4, 1, 1}));
  EXPECT_EQ(joined(apart, apart.dense_data, 1), apart.dense_data);
}

// Of the four ranks of a node, only those of the first or the last pipeline rank sum a tied table:
// one without data parallelism, two replicas of it with.
TEST(GroupShape, OfATiedTableSharesPortsWithItsReplicasOnly) {
  for (const int data : {1, 2}) {
    const Strategy s = strategy_of({.data = data, .pipeline = 8 / data}, 8 / data);
    const TaskGraph graph =
        lower(plan_of(s, 8), gpt({.blocks = 8, .tied = true}), cluster_of(2, 4));
    std::vector<GroupShape> shapes;
    for (const Work& work : graph.works)
      if (work.kind == TaskKind::kCollective && work.collective.axis == Axis::kPipeline)
        shapes.push_back(work.collective.group);
    EXPECT_THAT(shapes, testing::Contains(GroupShape{2, 2, data}));
    EXPECT_THAT(shapes, testing::Not(testing::Contains(GroupShape{2, 2, 4})));
  }
}

TEST(GroupShape, FollowsFromRankOrderAndNodes) {
  const auto shape = [](std::int64_t count, std::int64_t stride, std::int64_t ranks) {
    return group_shape_of(
        {.count = count, .stride = stride, .job_ranks = ranks, .devices_per_node = 8});
  };
  EXPECT_EQ(shape(8, 1, 64), (GroupShape{8, 1, 1}));    // tensor inside a node
  EXPECT_EQ(shape(8, 8, 64), (GroupShape{8, 8, 8}));    // data, one rank in each node
  EXPECT_EQ(shape(8, 4, 64), (GroupShape{8, 4, 4}));    // two ranks in each node, four groups
  EXPECT_EQ(shape(16, 1, 64), (GroupShape{16, 2, 1}));  // tensor over two nodes
  EXPECT_EQ(shape(4, 2, 8), (GroupShape{4, 1, 1}));     // all in one node
  EXPECT_EQ(shape(3, 1, 24), (GroupShape{3, 2, 4}));    // ranks 6, 7, 8 straddle two nodes
  EXPECT_EQ(shape(1, 4, 64), (GroupShape{}));
}

// 128 ranks on racks of 72: 72 does not divide 128, the largest even number that does is 64.
// dp 8 x pp 2 x tp 8: each stage fills the 64 used devices of a rack, so that its 8 replicas of 8
// tensor ranks stay inside, and all 64 ranks send to the next rack.
TEST(GroupShape, CountsTheUsedDevicesOfPartialRacks) {
  const Strategy staged = strategy_of({.data = 8, .pipeline = 2, .tensor = 8}, 8);
  const JobGroups groups = job_groups_of(staged, cluster_of(2, 72));
  EXPECT_EQ(groups.devices_per_node, 64);
  EXPECT_EQ(groups.tensor, (GroupShape{8, 1, 1}));
  EXPECT_EQ(groups.dense_data, (GroupShape{8, 1, 1}));
  EXPECT_EQ(groups.all, (GroupShape{128, 2, 1}));
  EXPECT_TRUE(crossing_of(groups, 0, 1).crosses_nodes);
  EXPECT_EQ(crossing_of(groups, 0, 1).flows_per_node, 64);
  // dp 16 x tp 8: every data group has 8 ranks in each of two racks, and 8 groups share the ports.
  const Strategy flat = strategy_of({.data = 16, .tensor = 8}, 1);
  EXPECT_EQ(job_groups_of(flat, cluster_of(2, 72)).dense_data, (GroupShape{16, 2, 8}));
  // A job that fits in one rack, or fills racks, uses them as they are.
  const Strategy filling = strategy_of({.data = 18, .tensor = 8}, 1);
  EXPECT_EQ(job_groups_of(filling, cluster_of(2, 72)).dense_data, (GroupShape{18, 2, 8}));
  const Strategy small = strategy_of({.data = 8, .tensor = 8}, 1);
  EXPECT_EQ(job_groups_of(small, cluster_of(2, 72)).dense_data, (GroupShape{8, 1, 1}));
}

}  // namespace
}  // namespace meshwright
