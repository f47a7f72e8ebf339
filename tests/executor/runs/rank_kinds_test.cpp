/// Training on ranks of every kind: bitwise equal results, results of runs that end early, and
/// modeled links that are slower than the machine's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "executor/training/run_report.hpp"
#include "tests/executor/launch/on_ranks.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

TEST(RunReports, RoundTrip) {
  const RunReport step =
      StepReport{.step = 7,
                 .is_whole = true,
                 .loss = 2.5,
                 .spans = {{TaskId(3), Ticks(10), Ticks(20)}, {TaskId(1), Ticks(20), Ticks(25)}}};
  EXPECT_EQ(run_report_from(to_bytes(step)), step);
  EndReport end;
  end.peak_memory[MemoryClass::kLogits] = Bytes(123);
  end.parameters = {{TensorId(4), 10, {1.5F, -2}}, {TensorId(5), 0, {}}};
  EXPECT_EQ(run_report_from(to_bytes(RunReport(end))), RunReport(end));
}

TEST(RunReports, MergeConsecutiveElements) {
  std::vector<ParameterValues> values;
  for (const int number : {4, 5, 6, 9, 10}) add_element(values, TensorId(1), number, 1);
  add_element(values, TensorId(2), 11, 1);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0], (ParameterValues{TensorId(1), 4, {1, 1, 1}}));
  EXPECT_EQ(values[1].first, 9);
  EXPECT_EQ(values[2].tensor, TensorId(2));
}

std::vector<NamedPlan> cases() {
  return {
      {"data_4_zero_1", kGpt, [](Strategy& s) { use_data(s, 4, 1); }},
      {"tensor_2_sequence", kGpt, [](Strategy& s) { use_sequence_parallel(s, 2); }},
      {"pipeline_4", kLlama, [](Strategy& s) { s.degrees.pipeline = 4; }},
      {"experts_2_data_2", kMixtral, [](Strategy& s) { s.degrees.data = 2, s.degrees.expert = 2; }},
      {"data_2_tensor_2_pipeline_4", kGpt,
       [](Strategy& s) { s.degrees = {.data = 2, .pipeline = 4, .tensor = 2}; }},
  };
}

class EveryKindOfRank : public testing::TestWithParam<NamedPlan> {};

TEST_P(EveryKindOfRank, ComputesTheSameBits) {
  const Strategy strategy = GetParam().applied_to(base());
  const TrainingRun threads = run_plan(GetParam().config, strategy);
  const TrainingRun processes =
      run_plan(GetParam().config, strategy, {.ranks = RankKind::kProcesses});
  EXPECT_EQ(threads.steps.size(), static_cast<std::size_t>(kSteps));
  expect_bitwise_same_run(threads, processes);
  EXPECT_EQ(threads.peak_memory, processes.peak_memory);
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryKindOfRank, testing::ValuesIn(cases()), plan_name);

class EndsEarly : public testing::TestWithParam<RankKind> {
 protected:
  /// Two stages, with a fault in the second step of the second stage.
  TrainingRun run_with(FaultKind kind, const std::string& task) {
    Strategy strategy = base();
    strategy.degrees.pipeline = 2;
    owned_ = std::make_unique<TinyJob>(tiny_job(kGpt, strategy));
    job_ = owned_.get();
    TrainingRequest request = job_->request();
    request.ranks = GetParam();
    request.launch.watchdog_timeout = std::chrono::seconds(2);
    request.fault = fault_from_text("rank=1,step=1,kind=throw,task=" + task, job_->graph);
    request.fault->kind = kind;
    TrainingRun run = train(request);
    if (run.failure && run.failure->is_stuck) static_cast<void>(owned_.release());  // still in use
    return run;
  }
  std::string task_name(TaskId task) const { return stable_name(job_->graph, task); }
  TinyJob* job_ = nullptr;
  std::unique_ptr<TinyJob> owned_;
};

TEST_P(EndsEarly, WhenARankThrows) {
  const TrainingRun run = run_with(FaultKind::kThrow, "F2");
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_EQ(run.failure->rank, RankId(1));
  EXPECT_THAT(task_name(run.failure->task), HasSubstr("r1.compute.s1.F2"));
  EXPECT_EQ(run.failure->cause, "injected fault");
}

/// The first step is complete; of the second one, the tasks before the fault are done.
TEST_P(EndsEarly, AndKeepsCompletedTasks) {
  const TrainingRun run = run_with(FaultKind::kThrow, "F2");
  ASSERT_EQ(run.steps.size(), 1u);
  ASSERT_TRUE(run.unfinished.has_value());
  const TaskGraph& graph = job_->graph;
  int done = 0;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.rank != 1 || task.stream != Stream::kCompute) continue;
    const std::string name = task_name(TaskId(i));
    // 1F1B on the last stage: F0 B0 F1 B1 F2.
    const bool is_before = name.ends_with(".F0") || name.ends_with(".B0") ||
                           name.ends_with(".F1") || name.ends_with(".B1");
    EXPECT_EQ(run.unfinished->is_done[i], is_before) << name;
    done += run.unfinished->is_done[i];
  }
  EXPECT_EQ(done, 4);
}

TEST_P(EndsEarly, WhenARankHangs) {
  const TrainingRun run = run_with(FaultKind::kHang, "B1");
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_EQ(run.failure->rank, RankId(1));
  EXPECT_THAT(run.failure->cause, HasSubstr("hung"));
  EXPECT_EQ(run.failure->is_stuck, GetParam() == RankKind::kThreads);
}

TEST_P(EndsEarly, WhenARankCrashes) {
  const TrainingRun run = run_with(FaultKind::kAbort, "B1");
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_EQ(run.failure->rank, RankId(1));
  EXPECT_THAT(run.failure->cause, HasSubstr("signal 6"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EndsEarly,
                         testing::Values(RankKind::kThreads, RankKind::kProcesses), kind_name);

// ---- modeled links ----

class ModeledLinks : public testing::TestWithParam<RankKind> {};

Ticks milliseconds(int count) { return Ticks(count * (kTicksPerSecond / 1000)); }

/// cpu-laptop with this message latency.
NamedText laptop_with_latency(const std::string& latency) {
  NamedText cluster = find_cluster("cpu-laptop");
  const std::string before = "latency = \"2 us\"";
  cluster.text.replace(cluster.text.find(before), before.size(), "latency = \"" + latency + "\"");
  return cluster;
}

/// 1F1B over two stages with 20 ms per message and 8 micro-batches. Stage 0 sends F0 and F1 at 0;
/// their gradients arrive at 40 ms, when B0 F2 B1 F3 follow, and so on: 4 times 40 ms, plus compute
/// time.
TEST_P(ModeledLinks, SlowThePipelineDown) {
  Strategy strategy = base();
  strategy.degrees.pipeline = 2;
  const TinyJob job = tiny_job(kGpt, strategy, laptop_with_latency("20 ms"));
  TrainingRequest request = job.request();
  request.ranks = GetParam();
  request.clock = TimelineClock::kWall;
  request.links = LinkTime::kModeled;
  request.steps = 2;
  const TrainingRun run = train(request);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  for (const MeasuredStep& step : run.steps) {
    EXPECT_GE(*std::max_element(step.times.end.begin(), step.times.end.end()), milliseconds(160));
    EXPECT_THAT(check_timeline(timeline_of(job.graph, step.times)), testing::IsEmpty());
  }
}

/// One micro-batch: a message of 500 ms in each direction must not be taken for a hang.
TEST_P(ModeledLinks, MayTakeLongerThanTheWatchdogTimeout) {
  Strategy strategy = base();
  strategy.degrees.pipeline = 2;
  strategy.micro_batch = static_cast<int>(strategy.global_batch);
  for (const TimelineClock clock : {TimelineClock::kWall, TimelineClock::kReplay}) {
    const TrainingRun run =
        run_plan(kGpt, strategy,
                 {.clock = clock,
                  .ranks = GetParam(),
                  .cluster = laptop_with_latency("900 ms"),
                  .steps = 1,
                  .launch = {.watchdog_timeout = std::chrono::milliseconds(700)},
                  .links = LinkTime::kModeled});
    ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
    EXPECT_GE(run.steps.front().duration, milliseconds(1800));
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, ModeledLinks,
                         testing::Values(RankKind::kThreads, RankKind::kProcesses), kind_name);

RankClock clock_that_began(std::chrono::milliseconds ago, LinkTime links) {
  return {TimelineClock::kWall, std::chrono::steady_clock::now() - ago, links};
}

class VirtualClock : public testing::Test {
 protected:
  VirtualClock() {
    clock.measure_by([] { return worked; });
  }
  static inline Ticks worked;
  RankClock clock{TimelineClock::kVirtual, RankClock::Moment()};
};

/// 3 ticks of work, 50 of waiting, 4 of work.
TEST_F(VirtualClock, ExcludesWaitsInsideKernels) {
  clock.start_task(Ticks(100), true);
  clock.start_kernel();
  worked += Ticks(3);
  clock.pause_kernel();
  worked += Ticks(50);
  clock.resume_kernel();
  worked += Ticks(4);
  clock.end_kernel(Ticks());
  EXPECT_EQ(clock.time(), Ticks(107));
}

/// Work of 7 ticks at 100 before a collective is attributed to the update that starts at 200.
TEST_F(VirtualClock, AddsDeferredKernelsToOneLaterTask) {
  clock.start_task(Ticks(100), false);
  clock.start_kernel();
  worked += Ticks(7);
  clock.defer_kernel();
  EXPECT_EQ(clock.time(), Ticks(100));
  clock.start_task(Ticks(200), true);
  clock.add_deferred();
  EXPECT_EQ(clock.time(), Ticks(207));
  clock.add_deferred();
  EXPECT_EQ(clock.time(), Ticks(207));
}

/// A message of 1 ms that was ready at 0 and is received half a second later is not delayed; one of
/// 550 ms is waited for.
TEST(RankClock, WaitsOnlyForModeledLinksSlowerThanTheMachine) {
  RankClock fast = clock_that_began(std::chrono::milliseconds(500), LinkTime::kModeled);
  const RankClock::Moment before = std::chrono::steady_clock::now();
  fast.start_task(Ticks(), true);
  fast.end_communication(Ticks(), milliseconds(1));
  EXPECT_GE(fast.time(), milliseconds(500));
  const auto passed = std::chrono::steady_clock::now() - before;
  EXPECT_LE(fast.time(),
            milliseconds(501) + Ticks(passed / std::chrono::nanoseconds(1) * kTicksPerNanosecond));

  RankClock slow = clock_that_began(std::chrono::milliseconds(500), LinkTime::kModeled);
  slow.start_task(Ticks(), true);
  slow.end_communication(Ticks(), milliseconds(550));
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(45));
  EXPECT_GE(slow.time(), milliseconds(550));
}

/// A message in flight does not occupy the thread; its consumer waits.
TEST(RankClock, DelaysModeledMessagesUntilTheyAreNeeded) {
  RankClock clock = clock_that_began(std::chrono::milliseconds(0), LinkTime::kModeled);
  clock.start_task(Ticks(), /*occupies_thread=*/false);
  const Ticks start = clock.time();
  clock.end_communication(start, milliseconds(60'000));
  EXPECT_GE(clock.time(), milliseconds(60'000));  // long before a minute is over
  clock.start_task(milliseconds(30), /*occupies_thread=*/true);
  EXPECT_GE(clock.time(), milliseconds(30));
  EXPECT_LT(clock.time(), milliseconds(60'000));
}

}  // namespace
}  // namespace meshwright
