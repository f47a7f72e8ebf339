#include "simulator/fit/fit_factors.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace meshwright {
namespace {

/// Measured times a + b of two constants 3 and 7, predicted with 1 and 1 and the fitted factors.
struct TwoConstants {
  std::vector<std::pair<double, double>> amounts;
  double offset = 0;  ///< ln(predicted / measured) added to every sample from index `from` on
  std::size_t from = 1000;

  FactorProblem problem(double spread) const {
    return {.log_errors =
                [this](const std::vector<double>& f) {
                  std::vector<double> errors;
                  for (std::size_t i = 0; i < amounts.size(); ++i) {
                    const auto& [a, b] = amounts[i];
                    errors.push_back(std::log((a * f[0] + b * f[1]) / (3 * a + 7 * b)) +
                                     (i >= from ? offset : 0));
                  }
                  return errors;
                },
            .weights = std::vector<double>(amounts.size(), 1.0),
            .ranges = {{.smallest = 0.01, .largest = 100, .spread = spread},
                       {.smallest = 0.01, .largest = 100, .spread = spread}}};
  }
};

const TwoConstants kSamples{{{1, 0}, {0, 1}, {1, 1}, {2, 1}, {1, 3}}};

TEST(FitFactors, FindsTheConstantsBehindExactMeasurements) {
  const FactorFit fit = fit_factors(kSamples.problem(100), 20);
  EXPECT_NEAR(fit.factors[0], 3, 0.02);
  EXPECT_NEAR(fit.factors[1], 7, 0.05);
  for (const double e : fit.log_errors) EXPECT_NEAR(e, 0, 0.01);
}

TEST(FitFactors, KeepsAFactorThatNothingDependsOn) {
  TwoConstants samples = kSamples;
  for (auto& [a, b] : samples.amounts) a += 1, b = 0;
  const FactorFit fit = fit_factors(samples.problem(1), 20);
  EXPECT_NEAR(fit.factors[1], 1, 1e-9);
  EXPECT_NEAR(fit.uncertainty[1], 1, 1e-6);  // as unknown as before
  EXPECT_LT(fit.uncertainty[0], 0.05);
}

// The starting point is not a prior: without measurements the factor returns to what is expected.
TEST(FitFactors, ReturnsToTheExpectedFactorWithoutMeasurements) {
  TwoConstants samples = kSamples;
  for (auto& [a, b] : samples.amounts) a += 1, b = 0;
  FactorProblem problem = samples.problem(1);
  problem.ranges[1].expected = 0.4;
  EXPECT_NEAR(fit_factors(problem, 20).factors[1], 0.4, 0.01);
}

// Two samples of the first constant pull it from 1 to 3. Without them only the expectation is left.
TEST(FitFactors, WithoutItsMeasurementsAConstantIsAsExpected) {
  const TwoConstants samples{{{1, 0}, {1, 0}, {0, 1}}};
  FactorProblem problem = samples.problem(1);
  problem.ranges[0].expected = 1;
  const FactorFit fit = fit_factors(problem, 20);
  const std::vector<double> without =
      factors_without(problem, fit, [](std::size_t i) { return i < 2; });
  EXPECT_GT(fit.factors[0], 2.5);
  EXPECT_NEAR(without[0], 1, 0.05);
}

TEST(FitFactors, StaysInsideTheRanges) {
  FactorProblem problem = kSamples.problem(100);
  problem.ranges[1].largest = 2;
  EXPECT_NEAR(fit_factors(problem, 20).factors[1], 2, 1e-9);
}

TEST(FitFactors, IgnoresSamplesWithoutPrediction) {
  FactorProblem problem = kSamples.problem(100);
  const auto errors = problem.log_errors;
  problem.log_errors = [errors](const std::vector<double>& f) {
    std::vector<double> e = errors(f);
    e[2] = std::nan("");
    return e;
  };
  EXPECT_NEAR(fit_factors(problem, 20).factors[0], 3, 0.02);
}

// The last two samples say that everything takes 20 % longer. Without them the constants are exact
// again.
TEST(FitFactors, ForgetsTheSamplesThatAreLeftOut) {
  TwoConstants samples = kSamples;
  samples.offset = -0.2;
  samples.from = 3;
  const FactorProblem problem = samples.problem(100);
  const FactorFit fit = fit_factors(problem, 20);
  const auto error_of = [](const std::vector<double>& f) {
    return std::abs(std::log(f[0] / 3)) + std::abs(std::log(f[1] / 7));
  };
  const std::vector<double> without =
      factors_without(problem, fit, [](std::size_t i) { return i >= 3; });
  EXPECT_GT(error_of(fit.factors), 0.05);
  EXPECT_LT(error_of(without), 0.5 * error_of(fit.factors));
}

}  // namespace
}  // namespace meshwright
