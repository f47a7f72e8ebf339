#include "executor/ranks/learning_rate.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace meshwright {
namespace {

std::vector<float> rates(const RateSchedule& schedule, int steps) {
  std::vector<float> all;
  for (int step = 0; step < steps; ++step) all.push_back(learning_rate_at(8, schedule, step));
  return all;
}

void expect_rates(const RateSchedule& schedule, const std::vector<float>& expected) {
  const std::vector<float> found = rates(schedule, static_cast<int>(expected.size()));
  for (std::size_t step = 0; step < expected.size(); ++step)
    EXPECT_FLOAT_EQ(found[step], expected[step]) << "step " << step;
}

// The peak rate is 8. The warm-up grows by 8 / 4 a step.
TEST(LearningRate, IsConstantAfterTheWarmUp) {
  expect_rates({}, {8, 8, 8});
  expect_rates({.warmup = 4}, {2, 4, 6, 8, 8, 8});
}

// Warm-up of 2, decay of the 4 steps that are left: by a quarter of 8 - 4 a step.
TEST(LearningRate, DecaysLinearly) {
  expect_rates({.decay = RateDecay::kLinear, .warmup = 2, .total = 6, .minimum = 4},
               {4, 8, 8, 7, 6, 5, 4, 4});
}

// Over 6 steps the angle grows by 30 degrees a step: (1 + cos) / 2 is 1, 0.9330127, 0.75, 0.5,
// 0.25, 0.0669873, 0.
TEST(LearningRate, DecaysAlongTheCosine) {
  expect_rates({.decay = RateDecay::kCosine, .total = 6},
               {8, 7.4641016F, 6, 4, 2, 0.53589838F, 0, 0});
}

// The last 2 of 6 steps: 8 and 8 / 2.
TEST(LearningRate, DecaysAtTheEndOnly) {
  expect_rates({.decay = RateDecay::kWsd, .warmup = 1, .total = 6, .final_steps = 2},
               {8, 8, 8, 8, 8, 4, 0});
}

TEST(LearningRate, DecaysAfterAWarmUpOfAllSteps) {
  expect_rates({.decay = RateDecay::kCosine, .warmup = 2, .total = 2, .minimum = 1}, {4, 8, 1});
}

}  // namespace
}  // namespace meshwright
