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
  std::vector<std::size_t> reported;
  const auto points = sweep(strategies, job.model, job.cluster, *job.cost_model,
                            {.threads = 1,
                             .on_point =
                                 [&](std::size_t i, const SweepPoint& point) {
                                   EXPECT_TRUE(point.figures.has_value());
                                   reported.push_back(i);
                                 },
                             .canceled = [&] { return ++asked > 3; }});
  EXPECT_EQ(reported, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(points[2].figures.has_value());
  EXPECT_FALSE(points[3].figures.has_value());
  EXPECT_TRUE(points[3].problems.empty());
}

/// Fails for kernels of more than `limit` flop.
class FailingCosts : public CostModel {
 public:
  FailingCosts(const CostModel& costs, Flops limit) : costs_(costs), limit_(limit) {}
  Seconds time_of(const Kernel& kernel) const override {
    if (kernel.flops > limit_) throw InternalError("a kernel that is too large");
    return costs_.time_of(kernel);
  }
  Seconds time_of(const Collective& collective) const override {
    return costs_.time_of(collective);
  }
  TransferCost cost_of(const Transfer& transfer) const override { return costs_.cost_of(transfer); }
  std::string provenance() const override { return costs_.provenance(); }

 private:
  const CostModel& costs_;
  Flops limit_;
};

// The sequence of 512 tokens passes, and the one of 2048 does not.
TEST(Sweep, GoesOnAfterAPointThatFails) {
  const SmallJob job = dense_job();
  std::vector<Strategy> strategies(3, strategy_of(1, 1));
  strategies[1].sequence_length = 2048;
  // The output layer: 2 x 512 x 1024 x 16000 flop.
  const FailingCosts costs(*job.cost_model, Flops(2.0 * 1024 * 1024 * 16'000));
  const auto points = sweep(strategies, job.model, job.cluster, costs);
  EXPECT_TRUE(points[0].figures.has_value());
  EXPECT_TRUE(points[2].figures.has_value());
  EXPECT_FALSE(points[0].has_failed);
  EXPECT_TRUE(points[1].has_failed);
  EXPECT_FALSE(points[1].figures.has_value());
  ASSERT_EQ(points[1].problems.size(), 1U);
  EXPECT_EQ(points[1].problems.front().what, "a kernel that is too large");
}

}  // namespace
}  // namespace meshwright
