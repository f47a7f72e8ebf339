/// The claim that tests of every mode make: the same mathematics as on one rank.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tests/executor/tiny_training.hpp"

namespace meshwright {

/// Losses of all steps and parameters behind the last one.
inline void expect_same(const TrainingRun& one, const TrainingRun& many) {
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  ASSERT_EQ(one.steps.size(), many.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_NEAR(many.steps[i].loss / one.steps[i].loss, 1, 1e-5) << "step " << i;
  ASSERT_EQ(one.parameters.size(), many.parameters.size());
  for (const auto& [name, values] : one.parameters) {
    const std::vector<float>& others = many.parameters.at(name);
    ASSERT_EQ(values.size(), others.size()) << name;
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(others[i]), 2);
      norm += std::pow(static_cast<double>(values[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::max(1.0, std::sqrt(norm))) << name;
  }
}

}  // namespace meshwright
