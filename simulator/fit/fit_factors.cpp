#include "simulator/fit/fit_factors.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr double kNoise = 0.03;         // s
constexpr double kDifference = 0.05;    // step of ln(factor) for derivatives
constexpr double kFirstDamping = 1e-3;  // relative to the diagonal
constexpr double kMostDamping = 1e3;
constexpr double kConverged = 1e-4;  // relative decrease of the objective

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

double soft_l1(double e) { return 2 * (std::sqrt(1 + e * e / (kNoise * kNoise)) - 1); }
double soft_l1_slope(double e) { return 1 / std::sqrt(1 + e * e / (kNoise * kNoise)); }

class Solver {
 public:
  explicit Solver(const FactorProblem& problem)
      : problem_(problem), count_(static_cast<Eigen::Index>(problem.ranges.size())) {}

  std::vector<double> errors_at(const Vector& x) const {
    std::vector<double> errors = problem_.log_errors(factors_of(x));
    MW_CHECK(errors.size() == problem_.weights.size());
    return errors;
  }

  std::vector<double> factors_of(const Vector& x) const {
    std::vector<double> factors(static_cast<std::size_t>(count_));
    for (Eigen::Index j = 0; j < count_; ++j) factors[static_cast<std::size_t>(j)] = std::exp(x[j]);
    return factors;
  }

  double objective(const Vector& x, const std::vector<double>& errors) const {
    double sum = 0;
    for (std::size_t i = 0; i < errors.size(); ++i)
      if (!std::isnan(errors[i])) sum += problem_.weights[i] * soft_l1(errors[i]);
    for (Eigen::Index j = 0; j < count_; ++j) sum += std::pow(surprise(x, j) / range(j).spread, 2);
    return sum;
  }

  std::vector<std::vector<double>> jacobian(const Vector& x,
                                            const std::vector<double>& errors) const {
    std::vector<std::vector<double>> rows(errors.size(),
                                          std::vector<double>(static_cast<std::size_t>(count_)));
    for (Eigen::Index j = 0; j < count_; ++j) {
      Vector moved = x;
      moved[j] += kDifference;
      const std::vector<double> there = errors_at(moved);
      for (std::size_t i = 0; i < errors.size(); ++i)
        rows[i][static_cast<std::size_t>(j)] = (there[i] - errors[i]) / kDifference;
    }
    return rows;
  }

  /// Normal equations of the robust problem: a step d solves a d = -g.
  struct Normal {
    Matrix a;
    Vector g;
  };
  template <class LeftOut>
  Normal normal(const Vector& x, const std::vector<double>& errors,
                const std::vector<std::vector<double>>& rows, LeftOut left_out) const {
    Normal n{Matrix::Zero(count_, count_), Vector::Zero(count_)};
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const Eigen::Map<const Vector> row(rows[i].data(), count_);
      if (std::isnan(errors[i]) || !row.allFinite() || left_out(i)) continue;
      const double w = problem_.weights[i] * soft_l1_slope(errors[i]) / (kNoise * kNoise);
      n.a += w * row * row.transpose();
      n.g += w * errors[i] * row;
    }
    for (Eigen::Index j = 0; j < count_; ++j) {
      const double w = 1 / std::pow(range(j).spread, 2);
      n.a(j, j) += w;
      n.g[j] += w * surprise(x, j);
    }
    return n;
  }

  Vector stepped(const Vector& x, const Normal& n, double damping) const {
    Matrix a = n.a;
    a.diagonal() *= 1 + damping;
    Vector next = x - a.ldlt().solve(n.g);
    for (Eigen::Index j = 0; j < count_; ++j)
      next[j] = std::clamp(next[j], std::log(range(j).smallest), std::log(range(j).largest));
    return next;
  }

  Eigen::Index count() const { return count_; }

 private:
  /// Distance of ln(factor) from what was expected.
  double surprise(const Vector& x, Eigen::Index j) const {
    return x[j] - std::log(range(j).expected);
  }
  const FactorRange& range(Eigen::Index j) const {
    return problem_.ranges[static_cast<std::size_t>(j)];
  }

  const FactorProblem& problem_;
  Eigen::Index count_;
};

}  // namespace

FactorFit fit_factors(const FactorProblem& problem, int steps) {
  const Solver solver(problem);
  const auto keep_all = [](std::size_t) { return false; };
  Vector x = Vector::Zero(solver.count());
  std::vector<double> errors = solver.errors_at(x);
  double objective = solver.objective(x, errors);
  auto rows = solver.jacobian(x, errors);
  double damping = kFirstDamping;
  for (int step = 0; step < steps && damping < kMostDamping; ++step) {
    const auto normal = solver.normal(x, errors, rows, keep_all);
    bool converged = false;
    while (damping < kMostDamping) {
      const Vector next = solver.stepped(x, normal, damping);
      const std::vector<double> there = solver.errors_at(next);
      const double value = solver.objective(next, there);
      if (value >= objective) {
        damping *= 10;
        continue;
      }
      converged = objective - value < kConverged * objective;
      x = next, errors = there, objective = value;
      damping = std::max(kFirstDamping, damping / 100);
      rows = solver.jacobian(x, errors);
      break;
    }
    if (converged) break;
  }
  const Matrix covariance = solver.normal(x, errors, rows, keep_all)
                                .a.ldlt()
                                .solve(Matrix::Identity(solver.count(), solver.count()));
  FactorFit fit{.factors = solver.factors_of(x),
                .log_errors = std::move(errors),
                .jacobian = std::move(rows),
                .uncertainty = {}};
  for (Eigen::Index j = 0; j < solver.count(); ++j)
    fit.uncertainty.push_back(std::sqrt(std::max(0.0, covariance(j, j))));
  return fit;
}

std::vector<double> factors_without(const FactorProblem& problem, const FactorFit& fit,
                                    const std::function<bool(std::size_t)>& left_out) {
  const Solver solver(problem);
  Vector x(solver.count());
  for (Eigen::Index j = 0; j < solver.count(); ++j)
    x[j] = std::log(fit.factors[static_cast<std::size_t>(j)]);
  const auto normal = solver.normal(x, fit.log_errors, fit.jacobian, left_out);
  return solver.factors_of(solver.stepped(x, normal, kFirstDamping));
}

}  // namespace meshwright
