/// `--schedule auto`: never slower than published schedules, and reproducible from the plan file.
#include "planner/search/synthesized_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/formats/plan.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::IsEmpty;

Strategy split_of(int pipeline, int chunks, int data, std::int64_t batch) {
  Strategy strategy;
  strategy.degrees.pipeline = pipeline;
  strategy.degrees.chunks = chunks;
  strategy.degrees.data = data;
  strategy.global_batch = batch;
  strategy.sequence_length = 512;
  strategy.schedule = kSynthesizedSchedule;
  return strategy;
}

SmallJob job_on(int gpus, std::int64_t batch, Bytes memory) {
  return SmallJob(small_dense_model(), memory,
                  {.gpus = gpus, .global_batch = batch, .sequence_length = 512});
}

Ticks fastest_by_name(const Strategy& split, const SmallJob& job) {
  Ticks fastest = Ticks::max();
  for (const ScheduleRule& rule : schedule_rules()) {
    Strategy named = split;
    named.schedule = rule.name;
    if (!rule.worth_searching || rule.problem(request_of(named))) continue;
    const Plan plan = complete_plan(named, job.model, job.cluster, *job.cost_model);
    const Evaluation evaluation = job.evaluate(plan);
    if (fits_in_memory(evaluation)) fastest = std::min(fastest, evaluation.step_time);
  }
  return fastest;
}

TEST(SynthesizedPlan, IsNeverSlowerThanAScheduleByName) {
  int better = 0;
  for (const auto& [pipeline, chunks, batch] :
       {std::tuple(2, 1, 4), std::tuple(2, 1, 8), std::tuple(4, 1, 8), std::tuple(4, 1, 12),
        std::tuple(3, 1, 7), std::tuple(2, 2, 6)}) {
    const Strategy split = split_of(pipeline, chunks, 1, batch);
    const SmallJob job = job_on(pipeline, batch, 40_GiB);
    const Plan plan = complete_plan(split, job.model, job.cluster, *job.cost_model);
    EXPECT_THAT(check_plan(plan, job.model, job.cluster), IsEmpty());
    const Ticks by_name = fastest_by_name(split, job);
    const Ticks step = job.evaluate(plan).step_time;
    EXPECT_LE(step, by_name) << pipeline << " devices, " << chunks << " chunks, batch " << batch;
    better += step < by_name ? 1 : 0;
  }
  EXPECT_GE(better, 1);  // six blocks on four devices: no published schedule is optimal
}

TEST(SynthesizedPlan, OrdersComeBackFromThePlanFile) {
  const SmallJob job = job_on(4, 8, 40_GiB);
  PlanFile file;
  file.plan = complete_plan(split_of(4, 1, 1, 8), job.model, job.cluster, *job.cost_model);
  if (file.plan.orders.empty()) {  // a published schedule was as good: any orders do for the file
    file.plan.strategy.schedule = kSynthesizedSchedule;
    file.plan.orders = schedule_of(file.plan).orders;
  }
  EXPECT_EQ(plan_file_from_json(to_json(file), "x.plan.json"), file);
}

TEST(SynthesizedPlan, IsRankedAmongTheOthers) {
  SmallJob job = job_on(4, 8, 40_GiB);
  job.fixed.pipeline = 4;
  const SearchResult by_name = job.search();
  job.fixed.schedule = kSynthesizedSchedule;
  const SearchResult measured = job.search();
  ASSERT_EQ(measured.plans.size(), by_name.plans.size());
  EXPECT_LE(measured.plans.front().evaluation.step_time,
            by_name.plans.front().evaluation.step_time);
  EXPECT_FALSE(measured.certificate.proved_optimal);
}

TEST(SynthesizedPlan, BrokenOrdersAreRefusedWithDeviceAndAction) {
  const SmallJob job = job_on(2, 4, 40_GiB);
  Plan plan = complete_plan(split_of(2, 1, 1, 4), job.model, job.cluster, *job.cost_model);
  plan.strategy.schedule = kSynthesizedSchedule;
  plan.orders = schedule_of(plan).orders;
  std::reverse(plan.orders[1].begin(), plan.orders[1].end());
  const std::vector<Diagnostic> problems = check_plan(plan, job.model, job.cluster);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.front().what, HasSubstr("device 1"));
  plan.orders.pop_back();
  EXPECT_EQ(check_plan(plan, job.model, job.cluster).front().what,
            "expected 2 orders (one per pipeline rank), got 1");
}

}  // namespace
}  // namespace meshwright
