#include "simulator/cost/kernel_curve_fit.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr int kFeatures = KernelCurveFit::kMostFeatures;
using Gram = Eigen::Matrix<double, kFeatures, kFeatures>;
using Column = Eigen::Matrix<double, kFeatures, 1>;

bool is_product(KernelKind kind) {
  return kind == KernelKind::kGemm || kind == KernelKind::kGroupedGemm;
}

/// Sum of squares of (features / time) c - 1 over the points, as c^T A c - 2 b^T c + count.
struct Squares {
  Gram a = Gram::Zero();
  Column b = Column::Zero();
  void add(const KernelCurveFit::Features& features, Seconds time) {
    Column row;
    for (int j = 0; j < kFeatures; ++j) row[j] = features[static_cast<std::size_t>(j)] / time.value;
    a += row * row.transpose();
    b += row;
  }
};

/// Least-squares coefficients of the chosen features; nothing if one would be negative.
struct Candidate {
  Column coefficients = Column::Zero();
  double squares = 0;
};
std::optional<Candidate> fitted(const Squares& squares, unsigned chosen) {
  std::vector<int> features;
  for (int j = 0; j < kFeatures; ++j)
    if ((chosen >> j & 1U) != 0) {
      if (squares.a(j, j) <= 0) return std::nullopt;  // no such feature
      features.push_back(j);
    }
  const auto count = static_cast<Eigen::Index>(features.size());
  Eigen::MatrixXd a(count, count);
  Eigen::VectorXd b(count), scale(count);
  for (Eigen::Index i = 0; i < count; ++i)
    scale[i] = 1 / std::sqrt(squares.a(features[static_cast<std::size_t>(i)],
                                       features[static_cast<std::size_t>(i)]));
  for (Eigen::Index i = 0; i < count; ++i) {
    const int fi = features[static_cast<std::size_t>(i)];
    b[i] = squares.b[fi] * scale[i];
    for (Eigen::Index j = 0; j < count; ++j)
      a(i, j) = squares.a(fi, features[static_cast<std::size_t>(j)]) * scale[i] * scale[j];
  }
  const Eigen::VectorXd c = a.colPivHouseholderQr().solve(b).cwiseProduct(scale);
  Candidate candidate;
  for (Eigen::Index i = 0; i < count; ++i) {
    if (!(c[i] >= 0)) return std::nullopt;
    candidate.coefficients[features[static_cast<std::size_t>(i)]] = c[i];
  }
  const Column& x = candidate.coefficients;
  candidate.squares = x.dot(squares.a * x) - 2 * squares.b.dot(x);
  return candidate;
}

/// Nonnegative least squares: with so few features, every subset is tried.
Column fit(const Squares& squares) {
  std::optional<Candidate> best;
  for (unsigned chosen = 1; chosen < 1U << kFeatures; ++chosen)
    if (const auto candidate = fitted(squares, chosen);
        candidate && (!best || candidate->squares < best->squares))
      best = candidate;
  MW_CHECK(best.has_value());  // one feature alone always fits
  return best->coefficients;
}

}  // namespace

KernelCurveFit::KernelCurveFit(const KernelCurve& curve) : kind_(curve.family.kind) {
  MW_CHECK(!curve.points.empty());
  Squares squares;
  for (const KernelPoint& point : curve.points) squares.add(features_of(point), point.time);
  const Column coefficients = fit(squares);
  for (std::size_t j = 0; j < coefficients_.size(); ++j)
    coefficients_[j] = coefficients[static_cast<Eigen::Index>(j)];
  for (const KernelPoint& point : curve.points)
    corrections_.add(coordinates_of(kind_, point), point.time.value / base_of(features_of(point)));
}

KernelCurveFit::Features KernelCurveFit::features_of(const KernelPoint& point) const {
  const auto b = static_cast<double>(point.batch), m = static_cast<double>(point.m);
  const auto n = static_cast<double>(point.n), k = static_cast<double>(point.k);
  if (is_product(kind_)) return {b * m * n * k, b * m * k, b * k * n, b * m * n, b, 1};
  if (kind_ == KernelKind::kAttention)
    return {point.flops.value, b * (m + n) * k, b * m * n, b, 1, 0};
  return {static_cast<double>(point.memory_traffic.value), 1, 0, 0, 0, 0};
}

double KernelCurveFit::base_of(const Features& features) const {
  double sum = 0;
  for (std::size_t j = 0; j < features.size(); ++j) sum += coefficients_[j] * features[j];
  return sum;
}

Seconds KernelCurveFit::time_of(const Kernel& kernel) const {
  const KernelPoint point = point_of(kernel);
  return Seconds(base_of(features_of(point)) *
                 corrections_.factor_at(coordinates_of(kind_, point)));
}

}  // namespace meshwright
