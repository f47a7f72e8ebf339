#include "simulator/predict/predict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "core/base/error.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr Ticks ms(std::int64_t n) { return Ticks(n * kTicksPerSecond / 1000); }

/// A tiny GPT of four blocks of width 64; a micro-batch is 2 x 128 tokens.
struct TinyJob {
  explicit TinyJob(const Strategy& strategy, const Cluster& on = cluster_of(2, 4))
      : plan(plan_of(strategy, 4)), cluster(on), cost_model(make_device_cost_model(on)) {}
  TrainingJob job() const {
    return {.plan = plan, .model = model, .cluster = cluster, .cost_model = *cost_model};
  }

  ModelGraph model = gpt({.blocks = 4});
  Plan plan;
  Cluster cluster;
  std::unique_ptr<CostModel> cost_model;
};

TEST(Predict, SimulatesOneRepresentativePerPipelineRankOrAllRanks) {
  const TinyJob tiny(strategy_of({.data = 2, .pipeline = 2}, 4));
  TrainingJob job = tiny.job();
  EXPECT_EQ(predict(job).graph.ranks.size(), 2u);
  job.ranks = RankSet::kAll;
  EXPECT_EQ(predict(job).graph.ranks.size(), 4u);
}

// Two stages on two nodes and one micro-batch: an activation and a gradient of 2 x 128 x 64 bf16
// values, 32,768 bytes, on ports of 25 GB/s: 1.31072 us each. A cost model that promises ports a
// thousand times as fast is held to the links of the cluster: 2 * 0.999 * 1.31072 us more.
TEST(Predict, SharesTheLinksOfTheClusterUnderContention) {
  TinyJob tiny(strategy_of({.pipeline = 2}, 1), cluster_of(2, 1));
  Cluster wide = tiny.cluster;
  wide.nodes.at("test-node").port_bandwidth = BytesPerSecond(25e12);
  tiny.cost_model = make_device_cost_model(wide);
  TrainingJob job = tiny.job();
  job.ranks = RankSet::kAll;
  const Ticks alone = predict(job).evaluation.pipeline_makespan;
  job.contention = true;
  const Ticks shared = predict(job).evaluation.pipeline_makespan;
  constexpr double kMicroseconds = 1e6;
  EXPECT_NEAR(to_seconds(shared - alone).value * kMicroseconds, 2 * 0.999 * 1.31072, 1e-5);
}

TEST(Predict, NeedsAllRanksForContention) {
  const TinyJob tiny(strategy_of({.pipeline = 2}, 1));
  TrainingJob job = tiny.job();
  job.contention = true;
  EXPECT_THROW(predict(job), InternalError);
}

// Two workers and two servers of their own: four devices share links.
TEST(Predict, CountsSeparateServersAmongTheDevicesUnderContention) {
  Strategy strategy = strategy_of({.data = 2}, 1);
  strategy.data_parallelism.kind = DataParallelKind::kParameterServer;
  strategy.data_parallelism.servers = 2;
  const TinyJob tiny(strategy, cluster_of(4, 1));
  TrainingJob job = tiny.job();
  job.ranks = RankSet::kAll;
  job.contention = true;
  EXPECT_EQ(predict(job).graph.ranks.size(), 4u);
}

// The same job by its graph of all ranks, and by those that differ: replicas of a pipeline, and
// parameter servers, which are no replicas.
TEST(Predict, GivesAllRanksTheTimesOfTheirGraph) {
  Strategy pipelines = strategy_of({.data = 4, .pipeline = 2}, 3);
  Strategy servers = strategy_of({.data = 2}, 1);
  servers.data_parallelism.kind = DataParallelKind::kParameterServer;
  servers.data_parallelism.servers = 2;
  for (const Strategy& strategy : {pipelines, servers}) {
    const TinyJob tiny(strategy, cluster_of(8, 4));
    TrainingJob job = tiny.job();
    job.contention = true;
    job.ranks = RankSet::kAll;
    const Prediction all = predict(job);
    const PricedReplicas priced = price_replicas(job);
    const SimulatedReplicas simulated =
        simulate_replicas(priced.all, priced.prices, {}, priced.shared());
    const SimulatedStep step = step_of_all_ranks(priced, simulated);
    EXPECT_EQ(step.graph, all.graph);
    EXPECT_EQ(step.times, all.times);
    const Evaluation by_class = predict(job, priced, simulated).evaluation;
    EXPECT_EQ(by_class.step_time, all.evaluation.step_time);
    EXPECT_NEAR(by_class.bubble_of_period, all.evaluation.bubble_of_period, 1e-12);
    EXPECT_NEAR(by_class.mfu, all.evaluation.mfu, 1e-12);
  }
}

// Equal stages and free messages: m + p - 1 = 5 times 10 + 20 ms.
TEST(Predict, ReplacesPricesForAWhatIf) {
  const TinyJob tiny(strategy_of({.pipeline = 2}, 4));
  TrainingJob job = tiny.job();
  job.what_if = {
      .forward = ms(10), .backward_input = ms(10), .backward_weight = ms(10), .message = Ticks()};
  EXPECT_EQ(predict(job).evaluation.pipeline_makespan, ms(150));
}

// A run with the traits of the job that took 10 % longer than predicted; p10 and p90 lie 1.2816
// standard deviations of 5 % around it (tests/simulator/fit/error_bars_test.cpp).
TEST(Predict, HasAnErrorBarWithTrainerAndPublishedRuns) {
  const TinyJob tiny(strategy_of({.data = 2}, 1));
  Trainer trainer;
  trainer.name = "megatron-core";
  TrainingJob job = tiny.job();
  job.trainer = &trainer;
  const Prediction unvalidated = predict(job);
  EXPECT_FALSE(unvalidated.error_bar.has_value());
  const std::vector<ValidatedRun> runs{
      {.source = "a",
       .id = "run",
       .traits =
           traits_of(tiny.plan.strategy, tiny.model, tiny.cluster, trainer, unvalidated.evaluation),
       .log_error = std::log(1.1)}};
  job.validated_runs = runs;
  const Prediction validated = predict(job);
  EXPECT_EQ(validated.evaluation, unvalidated.evaluation);
  ASSERT_TRUE(validated.error_bar.has_value());
  EXPECT_NEAR(validated.error_bar->p90, 1.1 * std::exp(1.2816 * 0.05), 1e-4);
  job.trainer = nullptr;
  EXPECT_FALSE(predict(job).error_bar.has_value());
}

TEST(Predict, IsCanceledByACheckpointThatThrows) {
  const TinyJob tiny(strategy_of({.pipeline = 2}, 4));
  TrainingJob job = tiny.job();
  int calls = 0;
  job.checkpoint = [&calls] { ++calls; };
  predict(job);
  EXPECT_EQ(calls, 2);  // after lowering, after the simulation
  for (int last = 1; last <= 2; ++last) {
    calls = 0;
    job.checkpoint = [&] {
      if (++calls == last) throw std::runtime_error("canceled");
    };
    EXPECT_THROW(predict(job), std::runtime_error);
    EXPECT_EQ(calls, last);
  }
}

// Two micro-batches per step: 14 forward passes of each of the two stages in seven steps.
TEST(Predict, SimulatesAsManyStepsOfAFlushlessScheduleAsAsked) {
  Strategy strategy = strategy_of({.pipeline = 2}, 2);
  strategy.schedule = "pipedream-2bw";
  const TinyJob tiny(strategy);
  TrainingJob job = tiny.job();
  job.steps = 7;
  int forwards = 0;
  for (const Task& task : simulate_step(job).graph.tasks)
    forwards += task.kind == TaskKind::kForward ? 1 : 0;
  EXPECT_EQ(forwards, 2 * 7 * 2);
}

TEST(Predict, IsTheEvaluationOfTheSimulatedStep) {
  const TinyJob tiny(strategy_of({.data = 2, .pipeline = 2}, 4));
  const Prediction whole = predict(tiny.job());
  const SimulatedStep step = simulate_step(tiny.job());
  EXPECT_EQ(step.times, whole.times);
  EXPECT_EQ(evaluate_step(tiny.job(), step).evaluation, whole.evaluation);
}

}  // namespace
}  // namespace meshwright
