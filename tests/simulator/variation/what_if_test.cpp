#include "simulator/variation/what_if.hpp"

#include <gtest/gtest.h>

#include "core/lowering/lower.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr Ticks ms(std::int64_t n) { return Ticks(n * kTicksPerSecond / 1000); }

/// One pipeline of four devices, eight micro-batches, 1f1b, as the cost model prices it.
struct Pipeline {
  Plan plan;
  TaskGraph graph;
  std::vector<WorkPrice> prices;

  Pipeline() {
    Strategy s;
    s.degrees.pipeline = 4;
    s.global_batch = 8;
    s.sequence_length = 128;
    plan = even_plan(s, 8, 4);
    const Cluster cluster = cluster_of(1, 4);
    graph = lower(plan, gpt({.blocks = 8, .tied = false}), cluster);
    prices = price_works(graph.parts, graph.works, *make_device_cost_model(cluster));
  }
  Evaluation evaluated() const {
    SimulatedTimes times;
    simulate(graph, prices, times);
    JobFacts job;
    job.job_ranks = 4;
    return evaluate(graph, prices, times, job);
  }
};

WhatIf even_passes() {
  return {
      .forward = ms(10), .backward_input = ms(10), .backward_weight = ms(10), .message = Ticks()};
}

// Equal stages and free messages: the pipeline takes m + p - 1 = 11 times 30 ms, of which every
// device works 8 (Narayanan et al., arXiv:2104.04473, 2.2.1).
TEST(WhatIf, GivesTheTextbookBubbleWhereStagesAreEqualAndMessagesFree) {
  Pipeline pipeline;
  apply(even_passes(), pipeline.graph, pipeline.prices);
  const Evaluation e = pipeline.evaluated();
  EXPECT_EQ(e.pipeline_makespan, ms(330));
  EXPECT_DOUBLE_EQ(e.bubble_of_makespan, 3.0 / 11);
}

// A message of 5 ms on the way of the first micro-batch there (3 hops) and of the last one back.
TEST(WhatIf, LengthensThePipelineByItsMessages) {
  Pipeline pipeline;
  WhatIf what_if = even_passes();
  what_if.message = ms(5);
  apply(what_if, pipeline.graph, pipeline.prices);
  EXPECT_GE(pipeline.evaluated().pipeline_makespan, ms(330 + 2 * 3 * 5));
}

// Pipeline rank 1 takes F 20, B 40; the others F 10, B 20. It starts at 10, works 8 x 60, waits
// from 70 (three forwards) to 90 (its first gradient: 30 + 10 + 10 forward, 20 + 20 backward), and
// pipeline rank 0 needs another 20 for the last backward: 10 + 480 + 20 + 20.
TEST(WhatIf, SlowsOnePipelinePosition) {
  Pipeline pipeline;
  WhatIf what_if = even_passes();
  what_if.slowness = {1, 2, 1, 1};
  apply(what_if, pipeline.graph, pipeline.prices);
  EXPECT_EQ(pipeline.evaluated().pipeline_makespan, ms(530));
}

// Priced passes are not round numbers: the parts of every price must still add up, which
// evaluate() checks, and the work of the slowed rank must be three times what it was.
TEST(WhatIf, KeepsThePartsOfPricesTogether) {
  Pipeline pipeline;
  const Ticks before = pipeline.evaluated().pipeline_makespan;
  apply({.slowness = {1, 1, 1, 3}}, pipeline.graph, pipeline.prices);
  EXPECT_TRUE(check_task_graph(pipeline.graph).empty());
  EXPECT_GT(pipeline.evaluated().pipeline_makespan, before);
}

TEST(WhatIf, ChangesNothingWhenItSaysNothing) {
  const Pipeline before;
  Pipeline after;
  apply({.slowness = {1, 1, 1, 1}}, after.graph, after.prices);
  EXPECT_EQ(after.graph, before.graph);
  EXPECT_EQ(after.evaluated(), before.evaluated());
}

TEST(WhatIf, TellsBoundsWhatStagesTake) {
  Pipeline pipeline;
  WhatIf what_if = even_passes();
  what_if.message = ms(2);
  what_if.slowness = {1, 1, 2, 1};
  apply(what_if, pipeline.graph, pipeline.prices);
  const auto times = stage_times_of(pipeline.graph, pipeline.prices, schedule_of(pipeline.plan));
  ASSERT_TRUE(times);
  EXPECT_EQ(times->forward, (std::vector<Ticks>{ms(10), ms(10), ms(20), ms(10)}));
  // Backwards are not split: all of their time counts as input gradient.
  EXPECT_EQ(times->backward_input, (std::vector<Ticks>{ms(20), ms(20), ms(40), ms(20)}));
  EXPECT_EQ(times->latency, ms(2));
}

}  // namespace
}  // namespace meshwright
