#include "core/lower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/cost_model.hpp"
#include "core/lower_passes.hpp"
#include "core/schedule.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_models::cluster_of;
using testing_models::even_plan;
using testing_models::gpt;
using testing_models::mixture;

Strategy strategy_of(ParallelDegrees degrees, std::int64_t microbatches) {
  Strategy s;
  s.degrees = degrees;
  s.micro_batch = 2;
  s.global_batch = 2 * degrees.data * microbatches;
  s.sequence_length = 128;
  s.schedule = degrees.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  return s;
}

Plan plan_of(const Strategy& s, int blocks) {
  return even_plan(s, blocks, static_cast<int>(stage_count(s.degrees)));
}

/// Times that tell every kind of work apart.
class PlainCosts : public CostModel {
 public:
  Seconds time_of(const Kernel& k) const override {
    return Seconds(1e-6 + k.flops.value * 1e-14 +
                   static_cast<double>(k.memory_traffic.value) * 1e-12);
  }
  Seconds time_of(const Collective& c) const override {
    return Seconds(1e-6 * c.group.ranks + static_cast<double>(c.bytes.value) * 1e-11);
  }
  TransferCost cost_of(const Transfer& t) const override {
    return {.latency = Seconds(2e-6),
            .occupancy = Seconds(static_cast<double>(t.bytes.value) * 1e-10)};
  }
  std::string provenance() const override { return "test"; }
};

/// Ends of all tasks by the rules of task_graph.hpp alone.
std::vector<Ticks> ends_of(const TaskGraph& graph) {
  const std::vector<WorkPrice> prices = price_works(graph.parts, graph.works, PlainCosts());
  std::map<std::pair<int, Stream>, Ticks> free;
  std::vector<Ticks> end(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size();) {
    const Task& first = graph.tasks[i];
    const bool group = first.kind == TaskKind::kCollective;
    const std::size_t count =
        group ? static_cast<std::size_t>(
                    graph.collectives[static_cast<std::size_t>(first.partner)].count)
              : 1;
    Ticks start;
    for (std::size_t j = i; j < i + count; ++j) {
      const Task& task = graph.tasks[j];
      start = std::max(start, free[{task.rank, task.stream}]);
      for (const TaskId before : graph.dependencies_of(TaskId(j)))
        start = std::max(start, end[before.index()]);
      if (task.kind == TaskKind::kReceive) {
        const auto send = static_cast<std::size_t>(task.partner);
        start = std::max(start, end[send] + prices[graph.tasks[send].work.index()].latency);
      }
    }
    for (std::size_t j = i; j < i + count; ++j) {
      const Task& task = graph.tasks[j];
      end[j] = start + prices[task.work.index()].duration;
      free[{task.rank, task.stream}] = end[j];
    }
    i += count;
  }
  return end;
}

Ticks step_time(const TaskGraph& graph) {
  const std::vector<Ticks> ends = ends_of(graph);
  return *std::max_element(ends.begin(), ends.end());
}

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

// ---- every plan -----------------------------------------------------------------------------

struct GridCase {
  Strategy strategy;
  int blocks = 0;
};

std::vector<GridCase> dense_grid() {
  std::vector<GridCase> cases;
  for (int p = 1; p <= 4; ++p)
    for (const int v : {1, 2})
      for (const int t : {1, 2})
        for (const int d : {1, 2})
          for (const int c : {1, 2})
            for (const int rounds : {1, 2})
              for (const RecomputeKind kind : {RecomputeKind::kNone, RecomputeKind::kSelective,
                                               RecomputeKind::kFull, RecomputeKind::kBlocks})
                for (const int zero : {0, 1}) {
                  if (p == 1 && v == 2) continue;
                  Strategy s = strategy_of(
                      {.data = d, .pipeline = p, .chunks = v, .context = c, .tensor = t},
                      p * rounds);
                  s.sequence_parallel = t > 1 && rounds == 2;
                  s.recompute = {.kind = kind, .blocks = kind == RecomputeKind::kBlocks ? 1 : 0};
                  s.zero = zero;
                  s.attention = c == 1 ? AttentionAlgorithm::kStandard : AttentionAlgorithm::kFlash;
                  cases.push_back({s, 9});
                }
  return cases;
}

std::string describe(const Strategy& s) {
  const ParallelDegrees& d = s.degrees;
  return testing::PrintToString(
             std::vector<int>{d.pipeline, d.chunks, d.tensor, d.data, d.context, s.zero}) +
         " " + s.schedule + " " + to_text(s.recompute);
}

TEST(Lower, MakesASoundGraphOfEveryPlanInTheGrid) {
  const ModelGraph model = gpt({.blocks = 9, .tied = true});
  const Cluster cluster = cluster_of(8, 4);
  int lowered = 0;
  for (const GridCase& c : dense_grid()) {
    if (rank_count(c.strategy.degrees) > 4 && rank_count(c.strategy.degrees) % 4 != 0) continue;
    SCOPED_TRACE(describe(c.strategy));
    const Plan plan = plan_of(c.strategy, c.blocks);
    ASSERT_THAT(check_plan(plan, model, cluster), IsEmpty());
    const TaskGraph folded = lower(plan, model, cluster);
    const TaskGraph all = lower(plan, model, cluster, {.ranks = RankSet::kAll});
    ASSERT_THAT(check_task_graph(folded), IsEmpty());
    ASSERT_THAT(check_task_graph(all), IsEmpty());
    ASSERT_EQ(static_cast<std::int64_t>(all.ranks.size()), rank_count(c.strategy.degrees));
    ASSERT_EQ(step_time(folded), step_time(all));
    ++lowered;
  }
  EXPECT_GT(lowered, 400);
}

TEST(Lower, MakesASoundGraphOfEveryScheduleThatAcceptsThePlan) {
  const ModelGraph model = gpt({.blocks = 16, .tied = true});
  const Cluster cluster = cluster_of(2, 4);
  int lowered = 0;
  for (const ScheduleRule& rule : schedule_rules())
    for (const int chunks : {1, 2})
      for (const int data : {1, 2}) {
        Strategy s = strategy_of({.data = data, .pipeline = 4, .chunks = chunks}, 8);
        s.schedule = std::string(rule.name);
        s.zero = 1;
        const ScheduleRequest request = schedule_request_of(s);
        if (rule.problem(request) || rule.weight_versions(request, PipelineRankId(0)) > 1) continue;
        SCOPED_TRACE(describe(s));
        const Plan plan = even_plan(s, 16, part_count(rule.placement(request)));
        const TaskGraph folded = lower(plan, model, cluster);
        const TaskGraph all = lower(plan, model, cluster, {.ranks = RankSet::kAll});
        EXPECT_THAT(check_task_graph(folded), IsEmpty());
        EXPECT_THAT(check_task_graph(all), IsEmpty());
        EXPECT_EQ(step_time(folded), step_time(all));
        ++lowered;
      }
  EXPECT_GE(lowered, 8);
}

TEST(Lower, MakesASoundGraphOfExpertsFoldedIntoAStage) {
  const ModelGraph model = mixture(4);
  const Cluster cluster = cluster_of(4, 4);
  for (const int tensor : {1, 2})
    for (const int expert : {1, 2, 4})
      for (const int expert_tensor : {1, 2})
        for (const int zero : {0, 1}) {
          Strategy s = strategy_of({.data = 8 / tensor,
                                    .pipeline = 2,
                                    .tensor = tensor,
                                    .expert = expert,
                                    .expert_tensor = expert_tensor},
                                   4);
          s.zero = zero;
          SCOPED_TRACE(testing::Message() << tensor << expert << expert_tensor << zero);
          const Plan plan = plan_of(s, 4);
          const TaskGraph folded = lower(plan, model, cluster);
          const TaskGraph all = lower(plan, model, cluster, {.ranks = RankSet::kAll});
          ASSERT_THAT(check_task_graph(folded), IsEmpty());
          ASSERT_THAT(check_task_graph(all), IsEmpty());
          EXPECT_EQ(step_time(folded), step_time(all));
        }
}

TEST(Lower, GivesTasksTheSameNamesFoldedAndUnfolded) {
  const ModelGraph model = gpt({.blocks = 4, .tied = true});
  const Cluster cluster = cluster_of(2, 4);
  const Plan plan = plan_of(strategy_of({.data = 2, .pipeline = 2, .tensor = 2}, 4), 4);
  const auto folded = stable_names(lower(plan, model, cluster));
  const auto all = stable_names(lower(plan, model, cluster, {.ranks = RankSet::kAll}));
  const std::set<std::string> known(all.begin(), all.end());
  EXPECT_EQ(known.size(), all.size());
  for (const std::string& name : folded) EXPECT_TRUE(known.contains(name)) << name;
  EXPECT_TRUE(known.contains("r7.compute.s1.F3"));
}

// ---- one small pipeline by hand -------------------------------------------------------------

// p = 2, m = 2 under 1F1B: stage 0 does F0 F1 B0 B1, stage 1 does F0 B0 F1 B1.
TEST(Lower, OrdersTwoStagesAsDrawnByHand) {
  const TaskGraph graph =
      lower(plan_of(strategy_of({.pipeline = 2}, 2), 4), gpt({.blocks = 4}), cluster_of(1, 4));
  std::map<std::pair<int, Stream>, std::string> orders;
  for (const Task& task : graph.tasks)
    orders[{task.rank, task.stream}] +=
        std::string(name_of(task.kind)) + std::to_string(task.microbatch) + " ";
  EXPECT_EQ((orders[{0, Stream::kCompute}]), "F0 F1 B0 B1 optimizer-1 ");
  EXPECT_EQ((orders[{1, Stream::kCompute}]), "F0 B0 F1 B1 optimizer-1 ");
  EXPECT_EQ((orders[{0, Stream::kSendNext}]), "send0 send1 ");
  EXPECT_EQ((orders[{1, Stream::kReceivePrevious}]), "receive0 receive1 ");
  EXPECT_EQ((orders[{1, Stream::kSendPrevious}]), "send0 send1 ");
  EXPECT_EQ((orders[{0, Stream::kReceiveNext}]), "receive0 receive1 ");
  // The gradient norm joins both ranks: a barrier in front of the optimizer.
  EXPECT_EQ((orders[{0, Stream::kData}]), "collective-1 ");
  EXPECT_EQ(graph.collectives.size(), 1u);
  EXPECT_EQ(graph.collectives[0].count, 2);
}

// 2 sequences * 128 tokens * 64 wide * 2 bytes = 32,768; a quarter under SP over 4, half over 2 cp.
TEST(Lower, SendsTheBoundaryActivation) {
  const auto message = [](ParallelDegrees degrees, bool sequence_parallel) {
    Strategy s = strategy_of(degrees, 2);
    s.sequence_parallel = sequence_parallel;
    const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(2, 4));
    for (const Work& work : graph.works)
      if (work.kind == TaskKind::kSend) return work.transfer;
    return Transfer{};
  };
  EXPECT_EQ(message({.pipeline = 2}, false),
            (Transfer{.bytes = Bytes(32'768), .crosses_nodes = false, .flows_per_node = 1}));
  EXPECT_EQ(message({.pipeline = 2, .tensor = 4}, false),
            (Transfer{.bytes = Bytes(32'768), .crosses_nodes = true, .flows_per_node = 4}));
  EXPECT_EQ(message({.pipeline = 2, .tensor = 4}, true).bytes, Bytes(8'192));
  EXPECT_EQ(message({.pipeline = 2, .context = 2}, false).bytes, Bytes(16'384));
}

TEST(Lower, SharesOnePartAmongEqualBlocks) {
  const TaskGraph graph =
      lower(plan_of(strategy_of({}, 1), 12), gpt({.blocks = 12}), cluster_of(1, 4));
  const Work& forward = graph.works[0];
  ASSERT_EQ(forward.parts.size(), 3u);  // embedding, 12 blocks, head
  EXPECT_EQ(forward.parts[1].count, 12);
  EXPECT_EQ(graph.parts[static_cast<std::size_t>(forward.parts[1].part)].name, "block.F");
  const Work& backward = graph.works[1];
  EXPECT_EQ(graph.parts[static_cast<std::size_t>(backward.parts.front().part)].name, "head.B");
}

// ---- collectives from cuts ------------------------------------------------------------------

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
TEST(ActivationMemory, FollowsThePromiseOf1F1B) {
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

TEST(StepEnd, LetsLaterChunksReduceFirst) {
  Strategy s = strategy_of({.data = 2, .pipeline = 2, .chunks = 2}, 2);
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

// ---- groups ---------------------------------------------------------------------------------

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

// ---- what cannot be lowered -----------------------------------------------------------------

TEST(Lower, RefusesAPlanThatIsNotSound) {
  Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  plan.blocks_per_stage = {2, 1};
  EXPECT_THROW(lower(plan, gpt({.blocks = 4}), cluster_of(1, 4)), InputError);
}

TEST(Lower, NamesDeviceAndActionOfADeadlock) {
  const Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  const StagesPass pass = lower_stages_pass(plan, gpt({.blocks = 4}), cluster_of(1, 4));
  Schedule schedule = find_schedule_rule("1f1b")->generate(schedule_request_of(plan.strategy));
  schedule.orders[0] = order_from_text("0F0 0B0 0F1 0B1");
  schedule.orders[1] = order_from_text("1F0 1F1 1B0 1B1");
  TaskGraph graph;
  graph.dependency_begin.push_back(0);
  try {
    append_pipeline_tasks(pass, schedule, graph);
    FAIL() << "the orders wait for each other";
  } catch (const InputError& error) {
    ASSERT_EQ(error.diagnostics().size(), 2u);
    EXPECT_EQ(error.diagnostics()[0].where, "schedule '1f1b', device 0");
    EXPECT_EQ(error.diagnostics()[0].what, "stuck before '0B0', which waits for 1B0 or 1I0");
    EXPECT_EQ(error.diagnostics()[1].what, "stuck before '1F1', which waits for 0F1");
  }
}

// The pair waits for inputs of both; what either hands out is there when both have ended.
TEST(Lower, LetsOverlappedPairsStartAndEndTogether) {
  const Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  const StagesPass pass = lower_stages_pass(plan, gpt({.blocks = 4}), cluster_of(1, 4));
  Schedule schedule = find_schedule_rule("1f1b")->generate(schedule_request_of(plan.strategy));
  schedule.orders[1] = order_from_text("1F0 (1F1;1B0) 1B1");
  TaskGraph graph;
  graph.works = pass.lowered.works;
  graph.dependency_begin.push_back(0);
  append_pipeline_tasks(pass, schedule, graph);
  int backward = -1;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.rank == 1 && task.kind == TaskKind::kBackward && task.microbatch == 0)
      backward = static_cast<int>(i);
  }
  ASSERT_GT(backward, 0);
  const auto before = static_cast<std::size_t>(backward) - 1;
  EXPECT_EQ(graph.tasks[before].kind, TaskKind::kForward);
  EXPECT_EQ(graph.tasks[before].microbatch, 1);
  EXPECT_THAT(graph.dependencies_of(TaskId(backward)), IsEmpty());  // the first waits for both
}

}  // namespace
}  // namespace meshwright
