#include "planner/search/sweep.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "planner/search/search.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

SmallJob dense_job() {
  return {small_dense_model(),
          Bytes(std::int64_t{80} << 30),
          {.gpus = 4, .global_batch = 8, .sequence_length = 512}};
}

Strategy strategy_of(int pipeline, int tensor) {
  Strategy s;
  s.degrees.pipeline = pipeline;
  s.degrees.tensor = tensor;
  s.global_batch = 8;
  s.sequence_length = 512;
  return s;
}

TEST(Sweep, GivesWhatEvaluatingEachAloneGives) {
  const SmallJob job = dense_job();
  const std::vector<Strategy> strategies{strategy_of(1, 1), strategy_of(2, 1), strategy_of(2, 2)};
  const auto points = sweep(strategies, job.model, job.cluster, *job.cost_model, {.threads = 3});
  ASSERT_EQ(points.size(), strategies.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Plan plan = complete_plan(strategies[i], job.model, job.cluster, *job.cost_model);
    const Evaluation alone = job.evaluate(plan);
    ASSERT_TRUE(points[i].figures.has_value());
    EXPECT_EQ(*points[i].figures, figures_of(plan.strategy, alone, ""));
    EXPECT_TRUE(points[i].problems.empty());
  }
}

TEST(Sweep, SaysWhyAPointCannotBe) {
  const SmallJob job = dense_job();
  // 8 heads cannot be cut in 3, and a V has two chunks on every device.
  std::vector<Strategy> strategies{strategy_of(1, 3), strategy_of(2, 1), strategy_of(1, 1)};
  strategies[1].schedule = "zb-v";
  const auto points = sweep(strategies, job.model, job.cluster, *job.cost_model);
  for (const std::size_t impossible : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_FALSE(points[impossible].figures.has_value());
    ASSERT_FALSE(points[impossible].problems.empty());
    EXPECT_NE(points[impossible].problems.front().what, "");
  }
  EXPECT_TRUE(points[2].figures.has_value());
}

TEST(Sweep, LeavesOutWhatWasNotBegunWhenCanceled) {
  const SmallJob job = dense_job();
  const std::vector<Strategy> strategies(16, strategy_of(1, 1));
  std::atomic<int> asked{0};
  std::size_t reported = 0;
  const auto points = sweep(strategies, job.model, job.cluster, *job.cost_model,
                            {.threads = 1,
                             .progress = [&](std::size_t done, std::size_t) { reported = done; },
                             .canceled = [&] { return ++asked > 3; }});
  EXPECT_EQ(reported, 3U);
  EXPECT_TRUE(points[2].figures.has_value());
  EXPECT_FALSE(points[3].figures.has_value());
  EXPECT_TRUE(points[3].problems.empty());
}

}  // namespace
}  // namespace meshwright
