// Flushless schedules: steady-state step time, its breakdown, and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/lowering/lower.hpp"
#include "core/plan/weight_versions.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "simulator/variation/variation.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;
using testing::IsEmpty;

Strategy strategy_of(std::string_view schedule, int stages, int microbatches) {
  Strategy s;
  s.degrees.pipeline = stages;
  s.global_batch = microbatches;
  s.sequence_length = 128;
  s.schedule = schedule;
  return s;
}

/// Times of every pass, update and message.
struct HandPrices {
  Ticks forward{10}, backward{20}, update{}, latency{};
  int slow_stage = -1;
  int slowness = 1;  ///< of all passes of that stage
};

struct Simulated {
  TaskGraph graph;
  std::vector<WorkPrice> prices;
  SimulatedTimes times;
  JobFacts job;
  Evaluation evaluation;
};

/// Gives every stage its own works, which inner stages with one block each otherwise share.
Simulated simulated(const Strategy& s, const HandPrices& by_hand) {
  const ModelGraph model = gpt({.blocks = s.degrees.pipeline});
  const Plan plan = even_plan(s, s.degrees.pipeline, s.degrees.pipeline);
  Simulated made;
  made.graph = lower(plan, model, cluster_of(1, 8));
  EXPECT_THAT(check_task_graph(made.graph), IsEmpty());
  made.prices.resize(made.graph.works.size());
  for (const Task& task : made.graph.tasks) {
    WorkPrice& price = made.prices[task.work.index()];
    const int times = task.stage == by_hand.slow_stage ? by_hand.slowness : 1;
    if (task.kind == TaskKind::kForward) price.duration = by_hand.forward * times;
    if (task.kind == TaskKind::kBackward) price.duration = by_hand.backward * times;
    if (task.kind == TaskKind::kOptimizer) price.duration = by_hand.update;
    if (task.kind == TaskKind::kSend) price.latency = by_hand.latency;
    price.kernels[0] = price.duration;
  }
  simulate(made.graph, made.prices, made.times);
  const auto m = static_cast<int>(microbatch_count(s));
  made.job.step = StepInWindow{.first_microbatch = steady_window(s).steady * m, .microbatches = m};
  made.job.job_ranks = rank_count(s.degrees);
  made.evaluation = evaluate(made.graph, made.prices, made.times, made.job);
  return made;
}

// Every device is busy all the time: m (F + B) per step for any p, even if a step does not fill the
// pipeline; the p - 1 passes of idle time caused by a flush are gone.
TEST(WithoutFlush, LeavesNoBubbleBetweenEqualStages) {
  for (const int p : {1, 2, 4, 7})
    for (const int m : {1, 3, 8}) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const Evaluation e = simulated(strategy_of("pipedream", p, m), {}).evaluation;
      EXPECT_EQ(e.step_time, Ticks(m * 30));
      EXPECT_EQ(e.period, e.step_time);
      EXPECT_EQ(e.pipeline_makespan, e.step_time);
      EXPECT_DOUBLE_EQ(e.bubble_of_period, 0);
      EXPECT_DOUBLE_EQ(e.bubble_of_makespan, 0);
      if (m < p) continue;
      const Evaluation two = simulated(strategy_of("pipedream-2bw", p, m), {}).evaluation;
      EXPECT_EQ(two.step_time, Ticks(m * 30));
      EXPECT_DOUBLE_EQ(two.bubble_of_period, 0);
    }
}

// An update of 3 follows every backward pass (8 x 33), or the eighth (8 x 30 + 3).
TEST(WithoutFlush, UpdatesBehindEveryMicrobatchOrBehindEveryStep) {
  const Simulated each = simulated(strategy_of("pipedream", 4, 8), {.update = Ticks(3)});
  EXPECT_EQ(each.evaluation.step_time, Ticks(8 * 33));
  EXPECT_EQ(each.evaluation.ranks[1].optimizer, Ticks(8 * 3));
  EXPECT_DOUBLE_EQ(each.evaluation.bubble_of_period, 0);
  const Simulated two = simulated(strategy_of("pipedream-2bw", 4, 8), {.update = Ticks(3)});
  EXPECT_EQ(two.evaluation.step_time, Ticks(8 * 30 + 3));
  EXPECT_EQ(two.evaluation.ranks[1].optimizer, Ticks(3));
}

// The slowest stage sets the pace: 2 x 30 per micro-batch; the others are idle half of the time.
TEST(WithoutFlush, RunsAtTheSpeedOfItsSlowestStage) {
  for (const int slow : {0, 3}) {
    const Evaluation e =
        simulated(strategy_of("pipedream", 4, 8), {.slow_stage = slow, .slowness = 2}).evaluation;
    EXPECT_EQ(e.step_time, Ticks(8 * 60));
    EXPECT_DOUBLE_EQ(e.bubble_of_period, (0 + 3 * 0.5) / 4);
    EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 0);
    EXPECT_EQ(e.ranks[1].bubble[static_cast<std::size_t>(BubbleCause::kImbalance)], Ticks(8 * 30));
    EXPECT_EQ(e.ranks[static_cast<std::size_t>(slow)].bubble,
              (std::array<Ticks, kBubbleCauseCount>{}));
  }
}

// Two stages, messages of 4. Forward b on stage 1 starts 4 after that on stage 0, backward b on
// stage 0 starts 4 after that on stage 1, and stage 0 is one micro-batch ahead:
//   F0(b) -> 4 -> F1(b) B1(b) -> 4 -> B0(b) F0(b + 2): 2 (F + B) + 2 x 4 for two micro-batches.
// Each stage waits once for 8 in that time: for 4 its message is in flight, which is exposed
// communication, and for 4 it waits for the other stage: 4 / 68 is bubble.
TEST(WithoutFlush, WaitsForMessagesThatNoPassHides) {
  const Evaluation e = simulated(strategy_of("pipedream", 2, 8), {.latency = Ticks(4)}).evaluation;
  EXPECT_EQ(e.step_time, Ticks(8 * 34));
  EXPECT_DOUBLE_EQ(e.bubble_of_period, 4.0 / 68);
  EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 4.0 / 68);
}

// One steady-state step is the difference between windows of S + 1 and S steps.
TEST(WithoutFlush, IsWhatOneMoreStepTakes) {
  for (const char* schedule : {"pipedream", "pipedream-2bw"})
    for (const int m : {4, 9}) {
      const Strategy s = strategy_of(schedule, 4, m);
      const ModelGraph model = gpt({.blocks = 9});
      Plan plan = even_plan(s, 9, 4);
      plan.blocks_per_stage = {2, 2, 3, 2};
      const Cluster cluster = cluster_of(2, 4);
      const auto window = [&](int steps) {
        const TaskGraph graph = lower(plan, model, cluster, {.steps = steps});
        return makespan(simulate(
            graph, price_works(graph.parts, graph.works, *make_device_cost_model(cluster))));
      };
      const TaskGraph graph = lower(plan, model, cluster);
      const auto prices = price_works(graph.parts, graph.works, *make_device_cost_model(cluster));
      JobFacts job;
      job.step = StepInWindow{.first_microbatch = steady_window(s).steady * m, .microbatches = m};
      const SimulatedTimes times = simulate(graph, prices);
      const Ticks step = evaluate(graph, prices, times, job).step_time;
      EXPECT_EQ(window(13) - window(12), step) << schedule << " m=" << m;
      EXPECT_EQ(draw_steps(graph, prices, {}, 1, 0, job.step).front(), step);
    }
}

// Weights of stage s of p: p - s versions (PipeDream), or two; gradients and optimizer state once.
// Of activations p - s micro-batches, as 1F1B with a flush.
TEST(WithoutFlush, HoldsTheVersionsOfItsWeights) {
  const auto peaks = [](const char* schedule) {
    const Simulated s = simulated(strategy_of(schedule, 4, 8), {});
    return peak_memory_by_rank(s.graph);
  };
  const Strategy flushing = strategy_of("1f1b", 4, 8);
  const auto flushed =
      peak_memory_by_rank(lower(even_plan(flushing, 4, 4), gpt({.blocks = 4}), cluster_of(2, 4)));
  const auto stashed = peaks("pipedream"), two = peaks("pipedream-2bw");
  for (std::size_t r = 0; r < 4; ++r) {
    SCOPED_TRACE(r);
    const Bytes weights = flushed[r][MemoryClass::kWeights];
    EXPECT_EQ(stashed[r][MemoryClass::kWeights], weights * (4 - static_cast<std::int64_t>(r)));
    EXPECT_EQ(two[r][MemoryClass::kWeights], weights * 2);
    for (const MemoryClass what :
         {MemoryClass::kGradients, MemoryClass::kOptimizer, MemoryClass::kActivations}) {
      EXPECT_EQ(stashed[r][what], flushed[r][what]);
      EXPECT_EQ(two[r][what], flushed[r][what]);
    }
  }
}

}  // namespace
}  // namespace meshwright
