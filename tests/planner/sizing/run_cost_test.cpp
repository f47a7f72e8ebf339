#include "planner/sizing/run_cost.hpp"

#include <gtest/gtest.h>

#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr Goal kTwoNodes{.gpus = 16, .global_batch = 64, .sequence_length = 1024};

PlanFigures figures_with_step(Seconds step) {
  PlanFigures figures;
  figures.step_time = to_ticks(step);
  return figures;
}

Cluster preset(const std::string& name) { return cluster_from_toml(find_cluster(name)); }

// The worked number of the header: 1e9 / 65,536 = 15,258.8, thus 15,259 steps of 2 s: 30,518 s. On
// 16 devices 16 x 30,518 / 3600 = 135.6356 device-hours; two p5.48xlarge of 55.04 USD: 933.17 USD.
TEST(RunCost, MultipliesWholeStepsByTheirTimeAndThePriceOfTheNodes) {
  const auto cost = cost_of_run({.tokens = 1'000'000'000}, kTwoNodes, preset("p5.48xlarge"),
                                figures_with_step(Seconds(2)));
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->steps, 15'259);
  EXPECT_EQ(cost->goodput, 1);
  EXPECT_DOUBLE_EQ(cost->time.value, 30'518);
  EXPECT_NEAR(cost->device_hours.value, 135.6356, 1e-4);
  ASSERT_TRUE(cost->cost);
  EXPECT_NEAR(cost->cost->value, 2 * 55.04 * 30'518 / 3600, 1e-9);
  EXPECT_FALSE(cost->range);
}

// 65,536 tokens are one step, one more is a second one.
TEST(RunCost, RoundsStepsUp) {
  EXPECT_EQ(step_count({.tokens = 1}, kTwoNodes), 1);
  EXPECT_EQ(step_count({.tokens = 65'536}, kTwoNodes), 1);
  EXPECT_EQ(step_count({.tokens = 65'537}, kTwoNodes), 2);
  EXPECT_EQ(step_count({.tokens = 1'000'000'000'000'000'000}, {1, 1, 1}),
            1'000'000'000'000'000'000);
}

TEST(RunCost, ScalesTheRangeOfTheStepTime) {
  PlanFigures figures = figures_with_step(Seconds(2));
  figures.range = StepTimeRange{to_ticks(Seconds(1.5)), to_ticks(Seconds(3)), 7};
  const auto cost = cost_of_run({.tokens = 65'536'000}, kTwoNodes, preset("dgx-a100"), figures);
  ASSERT_TRUE(cost && cost->range);
  EXPECT_DOUBLE_EQ(cost->range->p10.value, 1500);
  EXPECT_DOUBLE_EQ(cost->range->p90.value, 3000);
  EXPECT_FALSE(cost->cost);  // a DGX A100 is not for rent
}

// The worked number of goodput.hpp: 16,384 devices of 50,000 h, checkpoints of 60 s and restarts of
// 300 s have a goodput of 87.49 %; 1,000 steps of 2 s take 2,000 s / 0.8749.
TEST(RunCost, IncludesFailuresOfAllDevicesOfTheJob) {
  const PlannedRun run{.tokens = 1000 * 65'536,
                       .failures = FailureModel{.device_mtbf = Seconds(50'000 * 3600.0),
                                                .devices = 1,
                                                .checkpoint_write = Seconds(60),
                                                .restart = Seconds(300)}};
  Goal goal = kTwoNodes;
  goal.gpus = 16'384;
  const auto cost = cost_of_run(run, goal, preset("dgx-h100"), figures_with_step(Seconds(2)));
  ASSERT_TRUE(cost);
  EXPECT_NEAR(cost->goodput, 0.8749, 5e-5);
  EXPECT_NEAR(cost->time.value, 2000 / 0.8749, 0.2);
}

TEST(RunCost, ARunThatNeverCompletesHasNoCost) {
  PlannedRun run{.tokens = 65'536,
                 .failures = FailureModel{.device_mtbf = Seconds(1),
                                          .devices = 1,
                                          .checkpoint_write = Seconds(60),
                                          .restart = Seconds(300)},
                 .checkpoint_interval = Seconds(1000)};
  EXPECT_FALSE(cost_of_run(run, kTwoNodes, preset("dgx-a100"), figures_with_step(Seconds(2))));
}

// Racks of 72 at 761.904 USD per hour: 64 devices are one rack, 128 are two racks (64 of each), 144
// two. Five of the eight devices of a p5.48xlarge cost as much as all.
TEST(RunCost, BillsWholeNodes) {
  const Cluster racks = preset("p6e-gb200");
  EXPECT_EQ(price_of_job(racks, 64, {}), DollarsPerHour(761.904));
  EXPECT_EQ(price_of_job(racks, 128, {}), DollarsPerHour(2 * 761.904));
  EXPECT_EQ(price_of_job(racks, 144, {}), DollarsPerHour(2 * 761.904));
  EXPECT_EQ(price_of_job(preset("p5.48xlarge"), 5, {}), DollarsPerHour(55.04));
}

// Two nodes of eight at 10 USD, then nodes of four at 3 USD: 18 devices are two of the first type
// and one of the second.
TEST(RunCost, BillsTheNodesOfEveryType) {
  Cluster mixed = preset("p5.48xlarge");
  NodeModel node = mixed.nodes.begin()->second;
  node.price_per_hour = DollarsPerHour(10);
  mixed.nodes = {{"large", node}};
  node.device_count = 4;
  node.price_per_hour = DollarsPerHour(3);
  mixed.nodes["small"] = node;
  mixed.groups = {{"large", 2}, {"small", 2}};
  EXPECT_EQ(price_of_job(mixed, 8, {}), DollarsPerHour(10));
  EXPECT_EQ(price_of_job(mixed, 18, {}), DollarsPerHour(23));
  EXPECT_EQ(price_of_job(mixed, 24, {}), DollarsPerHour(26));
  mixed.nodes["small"].price_per_hour.reset();
  EXPECT_EQ(price_of_job(mixed, 16, {}), DollarsPerHour(20));
  EXPECT_EQ(price_of_job(mixed, 18, {}), std::nullopt);
}

TEST(RunCost, APricePerDeviceReplacesThoseOfTheCluster) {
  EXPECT_EQ(price_of_job(preset("p5.48xlarge"), 12, DollarsPerHour(2.5)), DollarsPerHour(30));
  EXPECT_EQ(price_of_job(preset("dgx-a100"), 12, DollarsPerHour(2.5)), DollarsPerHour(30));
  EXPECT_EQ(price_of_job(preset("dgx-a100"), 12, {}), std::nullopt);
}

}  // namespace
}  // namespace meshwright
