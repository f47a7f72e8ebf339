// The checks of times and memory find what is wrong.
#include "tests/properties/time_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/cost/device_cost_model.hpp"
#include "simulator/predict/predict.hpp"
#include "tests/properties/random_plan.hpp"

namespace meshwright {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

/// A valid plan on two stages, with messages, collectives and saved activations.
const Prediction& prediction() {
  static const JobParts parts = load_job_parts();
  static const Prediction predicted = [] {
    const ModelPart& model = parts.models.front();
    const ClusterPart& cluster = parts.clusters.front();
    Plan plan;
    plan.strategy.degrees = {.data = 2, .pipeline = 2};
    plan.strategy.global_batch = 8;
    plan.strategy.sequence_length = 512;
    plan.blocks_per_stage = {6, 6};
    const auto costs = make_device_cost_model(cluster.cluster);
    return predict({.plan = plan,
                    .model = model.graph,
                    .cluster = cluster.cluster,
                    .cost_model = *costs,
                    .ranks = RankSet::kAll});
  }();
  return predicted;
}

std::size_t first_task(TaskKind kind) {
  const std::vector<Task>& tasks = prediction().graph.tasks;
  const auto found =
      std::find_if(tasks.begin(), tasks.end(), [&](const Task& task) { return task.kind == kind; });
  return static_cast<std::size_t>(found - tasks.begin());
}

/// Findings if task i starts and ends later.
std::vector<std::string> wrong_if_shifted(std::size_t i, Ticks start, Ticks end, StartRule rule) {
  const Prediction& p = prediction();
  TaskTimes times = p.times;
  times.start[i] += start;
  times.end[i] += end;
  return wrong_starts(p.graph, p.prices, times, rule);
}

TEST(WrongStarts, AreNotFoundInASimulation) {
  for (const StartRule rule : {StartRule::kAtOnce, StartRule::kNotBefore})
    EXPECT_THAT(wrong_if_shifted(0, Ticks(), Ticks(), rule), IsEmpty());
}

TEST(WrongStarts, AreFoundForTasksThatWaitInVain) {
  const std::size_t last = prediction().graph.tasks.size() - 1;
  const auto found = wrong_if_shifted(last, Ticks(1), Ticks(1), StartRule::kAtOnce);
  ASSERT_THAT(found, Not(IsEmpty()));
  EXPECT_THAT(found.back(), HasSubstr("can start at"));
}

TEST(WrongStarts, AreFoundForTasksThatOvertakeTheirInputs) {
  for (const TaskKind kind : {TaskKind::kReceive, TaskKind::kBackward, TaskKind::kCollective})
    EXPECT_THAT(wrong_if_shifted(first_task(kind), Ticks(-1), Ticks(), StartRule::kNotBefore),
                Contains(HasSubstr("can start at")))
        << name_of(kind);
}

TEST(WrongStarts, AreFoundForTasksThatEndTooEarly) {
  for (const TaskKind kind : {TaskKind::kForward, TaskKind::kSend, TaskKind::kCollective})
    EXPECT_THAT(wrong_if_shifted(first_task(kind), Ticks(), Ticks(-1), StartRule::kNotBefore),
                Contains(HasSubstr("costs")))
        << name_of(kind);
  EXPECT_THAT(
      wrong_if_shifted(first_task(TaskKind::kReceive), Ticks(), Ticks(-1), StartRule::kNotBefore),
      Contains(HasSubstr("has not arrived")));
}

// From the start of the first to the end of the last task, rank 0 is busy or idle.
TEST(BusyTimes, LeaveOutGaps) {
  const Prediction& p = prediction();
  const std::vector<BusyTime> busy = busy_times(p.graph, p.prices, p.times);
  Ticks gaps, last, first = Ticks::max();
  for (std::size_t i = 0; i < p.graph.tasks.size(); ++i) {
    const Task& task = p.graph.tasks[i];
    if (task.rank != 0 || task.stream != Stream::kCompute) continue;
    if (first == Ticks::max()) first = last = p.times.start[i];
    gaps += p.times.start[i] - last;
    last = p.times.end[i];
  }
  EXPECT_EQ(busy[0].all + gaps, last - first);
  EXPECT_GT(gaps, Ticks());
}

TEST(WrongPeaks, AreFoundWhereAByteIsMissing) {
  const Prediction& p = prediction();
  Evaluation evaluation = p.evaluation;
  EXPECT_THAT(wrong_peaks(p.graph, evaluation), IsEmpty());
  evaluation.peak_memory[1][MemoryClass::kActivations] -= Bytes(1);
  EXPECT_THAT(wrong_peaks(p.graph, evaluation), SizeIs(1));
}

}  // namespace
}  // namespace meshwright
