/// PipeDream and PipeDream-2BW against serial emulations of their weight staleness.
#include <filesystem>

#include "core/formats/file.hpp"
#include "core/plan/placement.hpp"
#include "core/plan/weight_versions.hpp"
#include "executor/checkpoint/checkpoint.hpp"
#include "executor/runs/measured_timeline.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/executor/runs/adamw_emulation.hpp"
#include "tests/executor/runs/gradient_oracle.hpp"
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

constexpr int kManySteps = 10;

/// An untied model with different gradient norms per stage.
Strategy pipelined(std::string_view schedule, int stages, int replicas) {
  Strategy s = tiny_strategy();
  s.schedule = schedule;
  s.degrees.pipeline = stages;
  s.degrees.data = replicas;
  return s;
}

/// The block of each stage within the vector of all parameters.
std::vector<Block> blocks_of_stages(const Strategy& strategy) {
  const TinyJob job = tiny_job(kTinyLlama, strategy);
  std::vector<Block> blocks;
  std::int64_t begin = 0;
  for (const std::vector<LayerId>& layers : layers_of_stages(job.plan, job.model)) {
    const std::int64_t count = shards_of_part(job.model, layers, strategy, RankId(0)).dense;
    blocks.push_back({begin, begin + count});
    begin += count;
  }
  return blocks;
}

/// All weight versions. Each stage updates its own block with the gradient clipped by the norm of
/// the block.
class History {
 public:
  History(const Strategy& strategy, const std::vector<float>& initial)
      : blocks_(blocks_of_stages(strategy)), versions_(blocks_.size(), {initial}) {
    for (const Block& block : blocks_) updates_.emplace_back(TrainingOptions(), block);
    EXPECT_EQ(blocks_.back().end, static_cast<std::int64_t>(initial.size()));
  }

  /// The weights with stage k at version versions[k].
  std::vector<float> weights(const std::vector<int>& versions) const {
    std::vector<float> whole(versions_.front().front().size());
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const std::vector<float>& from = versions_[k][static_cast<std::size_t>(versions[k])];
      std::copy(from.begin() + blocks_[k].begin, from.begin() + blocks_[k].end,
                whole.begin() + blocks_[k].begin);
    }
    return whole;
  }

  /// Every stage creates its next version from its newest one.
  void update(const std::vector<float>& gradient) {
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      std::vector<float> own(gradient.size());
      std::copy(gradient.begin() + blocks_[k].begin, gradient.begin() + blocks_[k].end,
                own.begin() + blocks_[k].begin);
      clip(own, static_cast<double>(TrainingOptions().gradient_clip));
      std::vector<float> next = versions_[k].back();
      updates_[k].update(next, own);
      versions_[k].push_back(std::move(next));
    }
  }

  std::vector<float> newest() const {
    std::vector<int> versions;
    for (const auto& of_stage : versions_)
      versions.push_back(static_cast<int>(of_stage.size()) - 1);
    return weights(versions);
  }

 private:
  std::vector<Block> blocks_;
  std::vector<std::vector<std::vector<float>>> versions_;  ///< by stage: whole vectors
  std::vector<EmulatedAdamW> updates_;
};

/// Mean loss and gradient over one micro-batch of each replica.
GradientOracle::Result at_microbatch(GradientOracle& oracle, const Strategy& s, int microbatch,
                                     const std::vector<float>& weights) {
  const auto m = static_cast<int>(microbatch_count(s));
  GradientOracle::Result sum;
  sum.gradient.resize(weights.size());
  for (int replica = 0; replica < s.degrees.data; ++replica) {
    const int step = microbatch / m, sequence = replica * m + microbatch % m;
    const auto one = oracle.at(weights, step * static_cast<int>(s.global_batch) + sequence);
    sum.loss += one.loss / s.degrees.data;
    for (std::size_t i = 0; i < sum.gradient.size(); ++i)
      sum.gradient[i] += one.gradient[i] / static_cast<float>(s.degrees.data);
  }
  return sum;
}

/// w(t+1) = w(t) - nu grad f(w_1(t-n+1), ..., w_n(t)) for micro-batch t (PipeDream, section 3.3):
/// stage k of n, from 1, is n - k updates behind, and uses its initial weights until then. With
/// `is_stale` false there is no staleness, for comparison. The pipeline restarts, empty, from the
/// weights after `resumed_after` steps.
Emulated emulate_pipedream(const Strategy& s, bool is_stale = true, int resumed_after = 0) {
  Strategy one = tiny_strategy();
  one.global_batch = 1;
  GradientOracle oracle(kTinyLlama, one);
  History history(s, oracle.initial_weights());
  const int n = s.degrees.pipeline;
  const auto m = static_cast<int>(microbatch_count(s));
  Emulated made;
  made.losses.assign(kManySteps, 0);
  for (int t = 0; t < kManySteps * m; ++t) {
    std::vector<int> versions;
    const int oldest = t >= resumed_after * m ? resumed_after * m : 0;
    for (int k = 1; k <= n; ++k) versions.push_back(std::max(oldest, t - (is_stale ? n - k : 0)));
    const auto result = at_microbatch(oracle, s, t, history.weights(versions));
    made.losses[static_cast<std::size_t>(t / m)] += result.loss / m;
    history.update(result.gradient);
  }
  made.parameters = oracle.by_name(history.newest());
  return made;
}

/// W(t+1) = W(t) - nu grad f(W(t-1)), the gradient of a whole step (PipeDream-2BW, section 3.1);
/// the first two steps both use W(0), and those of a resumed run the weights it starts from.
Emulated emulate_2bw(const Strategy& s, int resumed_after = 0) {
  Strategy one = tiny_strategy();
  one.global_batch = s.global_batch;
  GradientOracle oracle(kTinyLlama, one);
  History history(s, oracle.initial_weights());
  Emulated made;
  for (int t = 0; t < kManySteps; ++t) {
    const std::vector<int> versions(static_cast<std::size_t>(s.degrees.pipeline),
                                    std::max(t >= resumed_after ? resumed_after : 0, t - 1));
    const auto result = oracle.at(history.weights(versions), t);
    made.losses.push_back(result.loss);
    history.update(result.gradient);
  }
  made.parameters = oracle.by_name(history.newest());
  return made;
}

struct Case {
  friend void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }
  std::string name;
  Strategy strategy;
};

Case named(
    std::string name, Strategy strategy, void (*change)(Strategy&) = [](Strategy&) {}) {
  change(strategy);
  return {std::move(name), std::move(strategy)};
}

class Flushless : public testing::TestWithParam<Case> {};

TEST_P(Flushless, MatchesItsEmulation) {
  const Strategy& strategy = GetParam().strategy;
  const TrainingRun run = train_tiny(kTinyLlama, strategy, kManySteps);
  expect_emulated(
      run, strategy.schedule == "pipedream" ? emulate_pipedream(strategy) : emulate_2bw(strategy));
  expect_bitwise_same_run(run, train_tiny(kTinyLlama, strategy, kManySteps));
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Flushless,
    testing::Values(named("pipedream_1", pipelined("pipedream", 1, 1)),
                    named("pipedream_2", pipelined("pipedream", 2, 1)),
                    named("pipedream_4", pipelined("pipedream", 4, 1)),
                    named("pipedream_4_of_2_microbatches", pipelined("pipedream", 4, 1),
                          [](Strategy& s) { s.global_batch = 2; }),
                    named("pipedream_4_data_2", pipelined("pipedream", 4, 2)),
                    named("pipedream_2_data_2_context_2", pipelined("pipedream", 2, 2),
                          [](Strategy& s) { s.degrees.context = 2; }),
                    named("pipedream_2_data_2_in_rings", pipelined("pipedream", 2, 2),
                          [](Strategy& s) { s.data_parallelism.kind = DataParallelKind::kRing; }),
                    named("two_versions_1", pipelined("pipedream-2bw", 1, 1)),
                    named("two_versions_2", pipelined("pipedream-2bw", 2, 1)),
                    named("two_versions_4", pipelined("pipedream-2bw", 4, 1)),
                    named("two_versions_4_data_2", pipelined("pipedream-2bw", 4, 2)),
                    named("two_versions_4_recompute", pipelined("pipedream-2bw", 4, 1),
                          [](Strategy& s) { s.recompute.kind = RecomputeKind::kFull; })),
    [](const auto& tried) { return tried.param.name; });

/// A checkpoint is taken with an empty pipeline and has one weight version. The resumed run
/// therefore differs from an uninterrupted one, as its first micro-batches use less stale weights.
/// It equals a serial emulation that starts there, with all moments.
TEST(ResumedFlushlessRun, StartsFromAnEmptyPipeline) {
  constexpr int kFirst = 4;
  const std::string file = testing::TempDir() + "/without_flush.safetensors";
  for (const std::string_view schedule : {"pipedream", "pipedream-2bw"}) {
    SCOPED_TRACE(schedule);
    const Strategy strategy = pipelined(schedule, 4, 1);
    const auto run = [&](int steps, const CheckpointOptions& checkpoints) {
      return run_plan(kTinyLlama, strategy, {.steps = steps, .checkpoints = checkpoints});
    };
    const TrainingRun first = run(kFirst, {.save = file});
    ASSERT_FALSE(first.failure.has_value()) << first.failure->cause;
    const Checkpoint saved = checkpoint_from_file(read_file(file, kLargestTensorFile),
                                                  tiny_job(kTinyLlama, strategy).model, file);
    const TrainingRun rest = run(kManySteps - kFirst, {.save = {}, .every = 0, .resume = &saved});
    ASSERT_FALSE(rest.failure.has_value()) << rest.failure->cause;

    const bool each = schedule == "pipedream";
    const Emulated emulated =
        each ? emulate_pipedream(strategy, true, kFirst) : emulate_2bw(strategy, kFirst);
    const Emulated whole = each ? emulate_pipedream(strategy) : emulate_2bw(strategy);
    double error = 0, difference = 0;
    for (std::size_t i = 0; i < rest.steps.size(); ++i) {
      error = std::max(error, std::abs(rest.steps[i].loss / emulated.losses[i + kFirst] - 1));
      difference =
          std::max(difference, std::abs(rest.steps[i].loss / whole.losses[i + kFirst] - 1));
    }
    expect_same_parameters(emulated.parameters, rest.parameters, 1e-5);
    EXPECT_LT(error, 1e-5);
    // The test is only meaningful if the uninterrupted run differs by much more.
    EXPECT_GT(difference, 4 * error);
    std::filesystem::remove(file);
  }
}

/// The emulations are only meaningful if staleness has an effect.
TEST(FlushlessTraining, UsesStaleWeights) {
  const Strategy each = pipelined("pipedream", 4, 1);
  const TrainingRun run = train_tiny(kTinyLlama, each, kManySteps);
  const Emulated fresh = emulate_pipedream(each, /*is_stale=*/false);
  EXPECT_GT(std::abs(run.steps.back().loss / fresh.losses.back() - 1), 1e-4);
  const TrainingRun late = train_tiny(kTinyLlama, pipelined("pipedream-2bw", 4, 1), kManySteps);
  const TrainingRun flushed = train_tiny(kTinyLlama, pipelined("1f1b", 4, 1), kManySteps);
  EXPECT_GT(std::abs(late.steps.back().loss / flushed.steps.back().loss - 1), 1e-4);
}

TEST(FlushlessRuns, AgreeBetweenProcessesAndThreads) {
  for (const char* schedule : {"pipedream", "pipedream-2bw"}) {
    const Strategy strategy = pipelined(schedule, 2, 2);
    const TrainingRun threads = run_plan(kTinyLlama, strategy);
    expect_bitwise_same_run(threads,
                            run_plan(kTinyLlama, strategy, {.ranks = RankKind::kProcesses}));
  }
}

/// 16-bit weights are rounded from the master weights for every version. One stage of PipeDream has
/// no stale weights, so one step of eight micro-batches equals eight steps of one.
TEST(FlushlessRuns, MatchStepsOfOneMicrobatchInBf16) {
  Strategy stage = pipelined("pipedream", 1, 1);
  stage.dtype = Dtype::kBf16;
  Strategy steps = pipelined("1f1b", 1, 1);
  steps.dtype = Dtype::kBf16;
  steps.global_batch = 1;
  const TrainingRun one = train_tiny(kTinyLlama, stage, 2);
  const TrainingRun many = train_tiny(kTinyLlama, steps, 2 * static_cast<int>(stage.global_batch));
  ASSERT_FALSE(one.failure.has_value()) << one.failure->cause;
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  EXPECT_EQ(one.parameters, many.parameters);
}

TEST(FlushlessRuns, AreReproducibleWithTwoVersionsInBf16) {
  Strategy strategy = pipelined("pipedream-2bw", 4, 1);
  strategy.dtype = Dtype::kBf16;
  const TrainingRun run = train_tiny(kTinyLlama, strategy, kManySteps);
  expect_bitwise_same_run(run, train_tiny(kTinyLlama, strategy, kManySteps));
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss);
}

/// The replay sleeps as predicted: its timeline and step times are those of the simulation.
TEST(FlushlessRuns, RecordAllStepsInOneTimeline) {
  const Strategy strategy = pipelined("pipedream", 2, 1);
  const TinyJob job = tiny_job(kTinyLlama, strategy);
  const TrainingRun run = train(job.request());
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  ASSERT_EQ(run.steps.size(), static_cast<std::size_t>(kSteps));
  EXPECT_FALSE(run.unfinished.has_value());
  Ticks sum;
  for (const MeasuredStep& step : run.steps) {
    EXPECT_GT(step.duration, Ticks());
    sum += step.duration;
  }
  const TaskTimes& times = run.steps.back().times;
  EXPECT_EQ(sum, *std::max_element(times.end.begin(), times.end.end()));
  const Timeline timeline = measured_timeline(job.graph, run, std::nullopt);
  EXPECT_EQ(timeline.spans.size(), job.graph.tasks.size());
  EXPECT_EQ(check_timeline(timeline), std::vector<std::string>{});
}

/// The last task of this kind, of the first micro-batch of the second step.
TaskId task_of_second_step(const TinyJob& job, TaskKind kind, std::int32_t rank) {
  TaskId found;
  for (std::size_t i = 0; i < job.graph.tasks.size(); ++i) {
    const Task& task = job.graph.tasks[i];
    if (task.kind == kind && task.rank == rank &&
        task.microbatch == microbatch_count(job.plan.strategy))
      found = TaskId(i);
  }
  return found;
}

/// A weight of the last stage, which has one version, is set to NaN before the first pass of the
/// second step.
TEST(FlushlessRuns, NameTheStepOfTheFirstNan) {
  const Strategy strategy = pipelined("pipedream", 2, 1);
  const TinyJob job = tiny_job(kTinyLlama, strategy);
  const TaskId forward = task_of_second_step(job, TaskKind::kForward, 1);
  TrainingRequest request = job.request();
  request.clock = TimelineClock::kVirtual;
  request.fault = Fault{.task = forward, .kind = FaultKind::kNan, .step = 0};
  const TrainingRun run = train(request);
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_EQ(stable_name(job.graph, run.failure->task), stable_name(job.graph, forward));
  EXPECT_THAT(run.failure->cause, testing::HasSubstr("is not finite in step 1, layer"));
}

/// Rank 0 fails at its first update of the second step: the first step is complete, and the tasks
/// done in the second one are recorded.
TEST(FlushlessRuns, KeepMeasurementsFromBeforeAFailure) {
  const Strategy strategy = pipelined("pipedream", 2, 1);
  const TinyJob job = tiny_job(kTinyLlama, strategy);
  const TaskId update = task_of_second_step(job, TaskKind::kOptimizer, 0);
  TrainingRequest request = job.request();
  request.fault = Fault{.task = update, .kind = FaultKind::kThrow, .step = 0};
  const TrainingRun run = train(request);
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_EQ(run.failure->task, update);
  EXPECT_EQ(run.steps.size(), 1u);
  ASSERT_TRUE(run.unfinished.has_value());
  EXPECT_FALSE(run.unfinished->is_done[update.index()]);
  EXPECT_TRUE(run.unfinished->is_done[update.index() - 1]);  // the backward pass before it
}

}  // namespace
}  // namespace meshwright
