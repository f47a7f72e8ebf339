/// Fits factors on shared constants to many measured values at once, and asks what the fit would
/// have been without some of them.
///
/// Minimizes over x = ln(factors), within their ranges,
///
///   sum_i w_i rho((e_i(x) / s)^2) s^2 + sum_j ((x_j - ln expected_j) / spread_j)^2 s^2
///
/// with e = ln(predicted / measured), rho the soft L1 loss and s = kNoise: errors beyond it count
/// linearly, and a factor moves only as far as the measurements pull it. Damped Gauss-Newton steps;
/// derivatives are differences of whole sweeps of predictions, which is why leave-one-out fits
/// reuse the Jacobian of the complete fit: one step each, from its solution.
#pragma once

#include <functional>
#include <vector>

namespace meshwright {

struct FactorRange {
  double smallest = 0.1, largest = 10;
  /// Before any measurement: ln(factor) is ln(expected) with this standard deviation.
  double expected = 1;
  double spread = 0.5;
};

struct FactorProblem {
  /// e by sample; NaN without a prediction. Deterministic.
  std::function<std::vector<double>(const std::vector<double>& factors)> log_errors;
  std::vector<double> weights;  ///< w by sample
  std::vector<FactorRange> ranges;
};

struct FactorFit {
  std::vector<double> factors;
  std::vector<double> log_errors;             ///< by sample, with these factors
  std::vector<std::vector<double>> jacobian;  ///< d e_i / d x_j: [sample][factor]
  /// ln(factor) is known to within +- this (one standard deviation), by factor.
  std::vector<double> uncertainty;
};

/// Starts at factors of 1. At most `steps` Jacobians.
FactorFit fit_factors(const FactorProblem& problem, int steps);

/// The factors without the samples for which `left_out` is true.
std::vector<double> factors_without(const FactorProblem& problem, const FactorFit& fit,
                                    const std::function<bool(std::size_t)>& left_out);

}  // namespace meshwright
