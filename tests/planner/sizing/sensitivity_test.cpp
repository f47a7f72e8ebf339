#include "planner/sizing/sensitivity.hpp"

#include <gtest/gtest.h>

#include "simulator/cost/perturbation.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

SmallJob dense_job(Bytes memory) { return {small_dense_model(), memory, kSmallGoal}; }

SizingJob sizing_job_of(const SmallJob& job) {
  return {job.model, job.cluster, *job.cost_model, job.goal, job.fixed};
}

Plan plan_of(const Strategy& strategy, const SmallJob& job) {
  return complete_plan(strategy, job.model, job.cluster, *job.cost_model);
}

SensitivityCase case_of(const std::vector<RankedPlan>& listed, const SmallJob& job) {
  const SizingJob perturbed_job = sizing_job_of(job);
  return find_sensitivity(listed, {}, {&perturbed_job, 1}, {.threads = 1}).front();
}

TEST(Sensitivity, OfUnchangedHardwareRepeatsTheSearch) {
  const SmallJob job = dense_job(kPlenty);
  const std::vector<RankedPlan> listed = job.search({.top = 3}).plans;
  ASSERT_EQ(listed.size(), 3u);
  const SensitivityCase same = case_of(listed, job);
  EXPECT_EQ(same.gap, 0);
  ASSERT_TRUE(same.winner.has_value());
  EXPECT_EQ(same.winner->listed, std::size_t{0});
  for (std::size_t i = 0; i < listed.size(); ++i)
    EXPECT_EQ(same.listed[i], (PlanOutcome{listed[i].evaluation.step_time, Bytes(0)}));
}

// With memory for all but the first plan, the winner is that of a search on such devices.
TEST(Sensitivity, FindsTheBestPlanThatFitsWhenTheFirstDoesNot) {
  const SmallJob job = dense_job(kPlenty);
  const std::vector<RankedPlan> listed = job.search({.top = 1}).plans;
  const Bytes peak = peak_memory(listed.front().evaluation);
  const SmallJob small = dense_job(Bytes(peak.value / 10 * 9));
  const SensitivityCase less = case_of(listed, small);
  EXPECT_EQ(less.listed[0].missing_memory, peak - Bytes(peak.value / 10 * 9));
  const RankedPlan best = small.search({.top = 1, .refines = true}).plans.front();
  ASSERT_TRUE(less.winner.has_value());
  EXPECT_FALSE(less.winner->listed.has_value());
  EXPECT_EQ(less.winner->strategy, best.plan.strategy);
  EXPECT_EQ(less.winner->step_time, best.evaluation.step_time);
}

TEST(Sensitivity, HasNoWinnerIfNothingFits) {
  const std::vector<RankedPlan> listed = dense_job(kPlenty).search({.top = 1}).plans;
  const SensitivityCase nothing = case_of(listed, dense_job(Bytes(1 << 20)));
  EXPECT_FALSE(nothing.winner.has_value());
  EXPECT_EQ(nothing.gap, 0);
}

// A canceled search proves nothing, but the listed plans are compared.
TEST(Sensitivity, ComparesTheListedPlansIfNothingIsSearched) {
  const SmallJob job = dense_job(kPlenty);
  const std::vector<RankedPlan> listed = job.search({.top = 2}).plans;
  const SizingJob same = sizing_job_of(job);
  SizingOptions canceled;
  canceled.canceled = [] { return true; };
  const SensitivityCase result = find_sensitivity(listed, {}, {&same, 1}, canceled).front();
  EXPECT_EQ(result.gap, 1);
  ASSERT_TRUE(result.winner.has_value());
  EXPECT_EQ(result.winner->listed, std::size_t{0});
  EXPECT_EQ(result.winner->step_time, listed[0].evaluation.step_time);
}

// The listed plan does not fit, and the second search finds nothing: tp 3 does not divide the
// heads. What the first search finds wins in both cases.
TEST(Sensitivity, LetsThePlansOfAllSearchesCompete) {
  const std::vector<RankedPlan> listed = dense_job(kPlenty).search({.top = 1}).plans;
  const Bytes memory(peak_memory(listed.front().evaluation).value / 10 * 9);
  const SmallJob searched = dense_job(memory);
  SmallJob impossible = dense_job(memory);
  impossible.fixed.tensor = 3;
  const std::vector<SizingJob> jobs{sizing_job_of(searched), sizing_job_of(impossible)};
  const auto cases = find_sensitivity(listed, {}, jobs, {.threads = 1});
  ASSERT_TRUE(cases[0].winner && cases[1].winner);
  EXPECT_FALSE(cases[0].winner->listed.has_value());
  EXPECT_EQ(cases[1].winner->strategy, cases[0].winner->strategy);
  EXPECT_EQ(cases[1].winner->step_time, cases[0].winner->step_time);

  // Nor does it need a search, if the plan is known.
  RankedPlan known_row;
  known_row.plan = plan_of(cases[0].winner->strategy, searched);
  const std::vector<RankedPlan> known{known_row};
  const auto told = find_sensitivity(listed, known, {&jobs[1], 1}, {.threads = 1});
  ASSERT_TRUE(told[0].winner.has_value());
  EXPECT_EQ(told[0].winner->strategy, known[0].plan.strategy);
}

// More hardware of any kind never makes the optimum slower, less never faster.
TEST(Sensitivity, IsMonotoneInEveryFigure) {
  const SmallJob job = dense_job(Bytes(4'000'000'000));
  const std::vector<RankedPlan> listed = job.search({.top = 3}).plans;
  ASSERT_FALSE(listed.empty());
  const Ticks step = listed.front().evaluation.step_time;
  for (const HardwareFigure figure :
       {HardwareFigure::kLinkBandwidth, HardwareFigure::kPeakCompute, HardwareFigure::kMemory})
    for (const double factor : {0.9, 1.1}) {
      SCOPED_TRACE(testing::Message() << name_of(figure) << " x " << factor);
      const Perturbation change{figure, factor};
      const Cluster cluster = perturbed(job.cluster, change);
      const auto base = make_device_cost_model(cluster);
      const auto costs =
          scaled_links(*base, cluster, figure == HardwareFigure::kLinkBandwidth ? factor : 1);
      const SizingJob changed{job.model, cluster, *costs, job.goal, job.fixed};
      const SensitivityCase result = find_sensitivity(listed, {}, {&changed, 1}, {}).front();
      ASSERT_TRUE(result.winner.has_value());
      if (factor > 1)
        EXPECT_LE(result.winner->step_time, step);
      else
        EXPECT_GE(result.winner->step_time, step);
    }
}

PlanFigures figures(std::int64_t step, std::optional<StepTimeRange> range) {
  PlanFigures f;
  f.step_time = Ticks(step);
  f.range = range;
  return f;
}

TEST(Sensitivity, ComparesPlansWithinTheErrorOfThePrediction) {
  const std::vector<PlanFigures> plans{figures(100, StepTimeRange{Ticks(95), Ticks(120)}),
                                       figures(101, StepTimeRange{Ticks(90), Ticks(121)}),
                                       figures(102, std::nullopt)};
  const std::vector<RangeCase> cases = range_cases(plans);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0], (RangeCase{"all plans at p10", Ticks(95), 1, Ticks(90)}));
  EXPECT_EQ(cases[1], (RangeCase{"all plans at p90", Ticks(120), 0, Ticks(120)}));
  EXPECT_EQ(cases[2], (RangeCase{"plan 1 at p90, others at p10", Ticks(120), 1, Ticks(90)}));
  EXPECT_TRUE(range_cases(std::vector{plans[2], plans[0]}).empty());  // plan 1 is unvalidated
  EXPECT_EQ(range_cases(std::vector{plans[0]}).size(), 2u);
}

}  // namespace
}  // namespace meshwright
