/// Shared expectations: the same results as on one rank, within a tolerance or bitwise.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/executor/runs/tiny_training.hpp"

namespace meshwright {

using Parameters = std::map<std::string, std::vector<float>>;

/// Relative to the norm of each parameter.
inline void expect_same_parameters(const Parameters& one, const Parameters& many,
                                   double tolerance) {
  ASSERT_EQ(one.size(), many.size());
  for (const auto& [name, values] : one) {
    const std::vector<float>& others = many.at(name);
    ASSERT_EQ(values.size(), others.size()) << name;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(others[i]), 2);
      norm += std::pow(static_cast<double>(values[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::max(1.0, std::sqrt(norm))) << name;
  }
}

/// Losses of all steps, and parameters after the last one.
inline void expect_same_run(const TrainingRun& one, const TrainingRun& many,
                            double tolerance = 1e-5) {
  ASSERT_FALSE(one.failure.has_value()) << one.failure->cause;
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  ASSERT_EQ(one.steps.size(), many.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_NEAR(many.steps[i].loss / one.steps[i].loss, 1, tolerance) << "step " << i;
  expect_same_parameters(one.parameters, many.parameters, tolerance);
}

inline void expect_bitwise_same_run(const TrainingRun& one, const TrainingRun& many) {
  ASSERT_FALSE(one.failure.has_value()) << one.failure->cause;
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  ASSERT_EQ(one.steps.size(), many.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_EQ(many.steps[i].loss, one.steps[i].loss) << "step " << i;
  EXPECT_EQ(one.parameters, many.parameters);
}

}  // namespace meshwright
