#include "core/lowering/lower.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/cost/cost_model.hpp"
#include "core/lowering/lowering_pass.hpp"
#include "core/lowering/passes.hpp"
#include "core/lowering/unfold.hpp"
#include "core/plan/placement.hpp"
#include "core/schedule/schedule.hpp"
#include "tests/complaints.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

/// Distinct times for every kind of work.
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

/// End times of all tasks, computed only from the rules in task_graph.hpp.
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

/// Folded and unfolded graphs, checked after every pass, take the same time.
void expect_same_step_of_all_ranks(const Plan& plan, const ModelGraph& model,
                                   const Cluster& cluster) {
  const TaskGraph folded = lower(plan, model, cluster, {.check_each_pass = true});
  const TaskGraph all =
      lower(plan, model, cluster, {.ranks = RankSet::kAll, .check_each_pass = true});
  EXPECT_EQ(static_cast<std::int64_t>(all.ranks.size()), rank_count(plan.strategy.degrees));
  EXPECT_EQ(step_time(folded), step_time(all));
}

TEST(Lower, MakesAValidGraphOfEveryPlanInTheGrid) {
  const ModelGraph model = gpt({.blocks = 9, .tied = true});
  const Cluster cluster = cluster_of(8, 4);
  int lowered = 0;
  for (const GridCase& c : dense_grid()) {
    if (rank_count(c.strategy.degrees) > 4 && rank_count(c.strategy.degrees) % 4 != 0) continue;
    SCOPED_TRACE(describe(c.strategy));
    const Plan plan = plan_of(c.strategy, c.blocks);
    ASSERT_THAT(check_plan(plan, model, cluster), IsEmpty());
    expect_same_step_of_all_ranks(plan, model, cluster);
    ++lowered;
  }
  EXPECT_GT(lowered, 400);
}

TEST(Lower, MakesAValidGraphOfEveryScheduleThatAcceptsThePlan) {
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
        expect_same_step_of_all_ranks(plan, model, cluster);
        ++lowered;
      }
  EXPECT_GE(lowered, 8);
}

TEST(Lower, MakesAValidGraphOfExpertsFoldedIntoAStage) {
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
          expect_same_step_of_all_ranks(plan_of(s, 4), model, cluster);
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
  for (const std::string_view name : folded) EXPECT_TRUE(known.contains(std::string(name))) << name;
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
  // The gradient norm synchronizes both ranks: a barrier before the optimizer.
  EXPECT_EQ((orders[{0, Stream::kData}]), "collective-1 ");
  EXPECT_EQ(graph.collectives.size(), 1u);
  EXPECT_EQ(graph.collectives[0].count, 2);
}

/// The first message between stages.
Transfer message_of(ParallelDegrees degrees, bool sequence_parallel,
                    const LoweringOptions& options = {}) {
  Strategy s = strategy_of(degrees, 2);
  s.sequence_parallel = sequence_parallel;
  const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(2, 4), options);
  for (const Work& work : graph.works)
    if (work.kind == TaskKind::kSend) return work.transfer;
  return {};
}

// 2 sequences * 128 tokens * 64 wide * 2 bytes = 32,768; a quarter under SP over 4, half over 2 cp.
TEST(Lower, SendsTheBoundaryActivation) {
  EXPECT_EQ(message_of({.pipeline = 2}, false),
            (Transfer{.bytes = Bytes(32'768), .crosses_nodes = false, .flows_per_node = 1}));
  EXPECT_EQ(message_of({.pipeline = 2, .tensor = 4}, false),
            (Transfer{.bytes = Bytes(32'768), .crosses_nodes = true, .flows_per_node = 4}));
  EXPECT_EQ(message_of({.pipeline = 2, .tensor = 4}, true).bytes, Bytes(8'192));
  EXPECT_EQ(message_of({.pipeline = 2, .context = 2}, false).bytes, Bytes(16'384));
}

// 32,768 bytes as above, a quarter from each of four tensor ranks.
TEST(Lower, SlicesMessagesOverTensorRanksIfTheTrainerDoes) {
  LoweringOptions options;
  options.memory.sends_slices = true;
  for (const bool sequence_parallel : {false, true})
    EXPECT_EQ(message_of({.pipeline = 2, .tensor = 4}, sequence_parallel, options).bytes,
              Bytes(8'192));
}

// A block has two column-parallel inputs, of attention and of the feed-forward layer. The
// all-reduce of their gradients can run next to the GEMM of the weight gradient that follows.
TEST(Lower, OverlapsInputGradientReductionIfTheTrainerDoes) {
  const auto overlapped = [](bool overlaps) {
    LoweringOptions options;
    options.memory.overlaps_gradient_reduction = overlaps;
    const TaskGraph graph = lower(plan_of(strategy_of({.tensor = 4}, 2), 4), gpt({.blocks = 4}),
                                  cluster_of(1, 4), options);
    std::pair<int, int> count;  // all, overlapped with later kernels
    for (const WorkPart& part : graph.parts) {
      if (part.name != "block.B") continue;
      for (const Step& step : part.steps)
        if (const auto* collective = std::get_if<Collective>(&step);
            collective != nullptr && collective->kind == CollectiveKind::kAllReduce) {
          ++count.first;
          count.second += collective->overlap.kernels > 0 ? 1 : 0;
        }
    }
    return count;
  };
  EXPECT_EQ(overlapped(false), std::pair(2, 0));
  EXPECT_EQ(overlapped(true), std::pair(2, 2));
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

// ---- what cannot be lowered -----------------------------------------------------------------

/// The step, and what its passes hold.
struct StepAndMemory {
  Ticks step;
  std::vector<MemoryAmounts> acquired;
  friend bool operator==(const StepAndMemory&, const StepAndMemory&) = default;
};
StepAndMemory lowered_with(const Strategy& strategy, std::string_view options) {
  Strategy s = strategy;
  s.layer_options = *layer_options_from_text(options);
  const TaskGraph graph = lower({s, {4, 4}}, gpt({.blocks = 8}), cluster_of(1, 4));
  StepAndMemory made{.step = step_time(graph), .acquired = {}};
  for (const Work& work : graph.works) made.acquired.push_back(work.acquired);
  return made;
}

// Options of all blocks are options of the plan.
TEST(Lower, GivesBlocksOptionsOfTheirOwn) {
  Strategy plain = strategy_of({.data = 1, .pipeline = 2}, 4), full = plain, two = plain;
  full.recompute.kind = RecomputeKind::kFull;
  two.recompute = {.kind = RecomputeKind::kBlocks, .blocks = 2};
  EXPECT_EQ(lowered_with(plain, "0-7:recompute=full"), lowered_with(full, ""));
  EXPECT_EQ(lowered_with(full, "0-7:recompute=none"), lowered_with(plain, ""));
  EXPECT_EQ(lowered_with(plain, "0-1:recompute=full+4-5:recompute=full"), lowered_with(two, ""));
  EXPECT_EQ(lowered_with(two, "0-1:recompute=none+4-5:recompute=none"), lowered_with(plain, ""));
  EXPECT_NE(lowered_with(plain, "3:recompute=full"), lowered_with(plain, ""));
}

// Per block: before and after attention, twice each, instead of an all-gather and a reduce-scatter
// before and after each of two products and their gradients.
TEST(Lower, SharesTheTokensOfBlocksAmongTensorRanks) {
  Strategy s = strategy_of({.data = 2, .tensor = 2}, 2);
  s.sequence_parallel = true;
  const auto lowered = [&](std::string_view options) {
    s.layer_options = *layer_options_from_text(options);
    return lower({s, {4}}, gpt({.blocks = 4}), cluster_of(1, 4));
  };
  const auto count = [](const TaskGraph& graph, CollectiveKind kind) {
    std::int64_t sum = 0;
    for (const Work& work : graph.works) {
      if (work.kind != TaskKind::kForward && work.kind != TaskKind::kBackward) continue;
      for (const WorkPartUse& use : work.parts)
        for (const Step& step : graph.parts[static_cast<std::size_t>(use.part)].steps) {
          const auto* collective = std::get_if<Collective>(&step);
          if (collective == nullptr || collective->kind != kind) continue;
          EXPECT_EQ(collective->axis, Axis::kTensor);
          EXPECT_EQ(collective->group.ranks, 2);
          sum += use.count;
        }
    }
    return sum;
  };
  const TaskGraph usual = lowered(""), three = lowered("0-2:tp=1");
  EXPECT_EQ(count(usual, CollectiveKind::kAllToAll), 0);
  EXPECT_EQ(count(three, CollectiveKind::kAllToAll), 3 * 4);
  const std::int64_t of_block =
      (count(usual, CollectiveKind::kReduceScatter) - count(three, CollectiveKind::kReduceScatter));
  EXPECT_EQ(of_block, 3 * 4);
}

// The ranks hold all weights of the block, and sum all of its gradients.
TEST(Lower, SumsGradientsOfBlocksWithSharedTokens) {
  constexpr std::int64_t kHidden = 64, kMatrices = 12 * kHidden * kHidden;
  Strategy s = strategy_of({.data = 1, .tensor = 2}, 2);
  s.sequence_parallel = true;
  const auto summed = [&](std::string_view options) {
    s.layer_options = *layer_options_from_text(options);
    const TaskGraph graph = lower({s, {4}}, gpt({.blocks = 4}), cluster_of(1, 4));
    std::int64_t bytes = 0;
    for (const Task& task : graph.tasks)
      if (const Collective& c = graph.works[task.work.index()].collective;
          task.kind == TaskKind::kCollective && c.axis == Axis::kTensor)
        bytes += c.bytes.value;
    return bytes;
  };
  const std::int64_t more = summed("1:tp=1") - summed("");
  EXPECT_GE(more, kFloat32Bytes * kMatrices);
  EXPECT_LT(more, kFloat32Bytes * (kMatrices + 20 * kHidden));
}

TEST(Lower, ReshardsBlocksAfterTheForwardPassOrNot) {
  Strategy reshards = strategy_of({.data = 4, .pipeline = 2}, 4);
  reshards.zero = 3;
  Strategy holds = reshards;
  holds.data_parallelism.reshard_after_forward = false;
  const auto gathers = [](const Strategy& strategy, std::string_view options) {
    Strategy s = strategy;
    s.layer_options = *layer_options_from_text(options);
    const TaskGraph graph = lower({s, {4, 4}}, gpt({.blocks = 8}), cluster_of(2, 4));
    return std::ranges::count_if(graph.tasks, [&](const Task& task) {
      return graph.works[task.work.index()].collective.kind == CollectiveKind::kAllGather &&
             task.kind == TaskKind::kCollective;
    });
  };
  const auto all = gathers(reshards, ""), few = gathers(holds, "");
  EXPECT_LT(few, all);
  const auto three = gathers(reshards, "1-3:fsdp-reshard=no");
  EXPECT_LT(few, three);
  EXPECT_LT(three, all);
  EXPECT_LT(three, gathers(reshards, "1-2:fsdp-reshard=no"));
}

TEST(Lower, RejectsAnInvalidPlan) {
  Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  plan.blocks_per_stage = {2, 1};
  EXPECT_THROW(lower(plan, gpt({.blocks = 4}), cluster_of(1, 4)), InputError);
}

/// Two stages with two micro-batches, lowered as far as their orders.
struct TwoStages {
  Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  ModelGraph model = gpt({.blocks = 4});
  Cluster cluster = cluster_of(1, 4);
  LoweringContext context{plan, model, cluster};

  TwoStages() { run_passes(lowering_passes_until("ranks"), context); }
};

TEST(Lower, NamesDeviceAndActionOfADeadlock) {
  TwoStages stages;
  LoweringContext& context = stages.context;
  context.schedule.orders[0] = order_from_text("0F0 0B0 0F1 0B1");
  context.schedule.orders[1] = order_from_text("1F0 1F1 1B0 1B1");
  const auto found = diagnostics_of([&] { append_pipeline(context); });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].where, "schedule '1f1b', device 0");
  EXPECT_EQ(found[0].what, "stuck before '0B0', which waits for 1B0 or 1I0");
  EXPECT_EQ(found[1].what, "stuck before '1F1', which waits for 0F1");
}

// The pair waits for the inputs of both; the outputs of either are available when both have ended.
TEST(Lower, LetsOverlappedPairsStartAndEndTogether) {
  TwoStages stages;
  LoweringContext& context = stages.context;
  context.schedule.orders[1] = order_from_text("1F0 (1F1;1B0) 1B1");
  append_pipeline(context);
  const TaskGraph& graph = context.graph();
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
