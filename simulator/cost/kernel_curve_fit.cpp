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

constexpr double kPower = 3;     // exponent of the distance in a weight
constexpr double kOwnReach = 3;  // distance of the uncorrected point w_0, in doublings
constexpr double kBlur = 0.5;    // doublings within which points are averaged
constexpr double kSharing = 4;   // scale of attention's fifth axis

bool is_product(KernelKind kind) {
  return kind == KernelKind::kGemm || kind == KernelKind::kGroupedGemm;
}

double doublings(double size) { return std::log2(std::max(size, 1.0)); }

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
    known_.push_back({.at = coordinates_of(point),
                      .log_correction = std::log(point.time.value / base_of(features_of(point)))});
}

KernelCurveFit::Features KernelCurveFit::features_of(const KernelPoint& point) const {
  const auto b = static_cast<double>(point.batch), m = static_cast<double>(point.m);
  const auto n = static_cast<double>(point.n), k = static_cast<double>(point.k);
  if (is_product(kind_)) return {b * m * n * k, b * m * k, b * k * n, b * m * n, b, 1};
  if (kind_ == KernelKind::kAttention)
    return {point.flops.value, b * (m + n) * k, b * m * n, b, 1, 0};
  return {static_cast<double>(point.memory_traffic.value), 1, 0, 0, 0, 0};
}

KernelCurveFit::Coordinates KernelCurveFit::coordinates_of(const KernelPoint& point) const {
  const auto bytes = static_cast<double>(point.memory_traffic.value);
  if (!is_product(kind_) && kind_ != KernelKind::kAttention) return {doublings(bytes)};
  const auto b = static_cast<double>(point.batch), m = static_cast<double>(point.m);
  const auto n = static_cast<double>(point.n), k = static_cast<double>(point.k);
  Coordinates at{doublings(b), doublings(m), doublings(n), doublings(k)};
  if (kind_ == KernelKind::kAttention)
    at[4] = kSharing * (doublings(bytes) - doublings(b * (m + n) * k));
  return at;
}

double KernelCurveFit::base_of(const Features& features) const {
  double sum = 0;
  for (std::size_t j = 0; j < features.size(); ++j) sum += coefficients_[j] * features[j];
  return sum;
}

Seconds KernelCurveFit::time_of(const Kernel& kernel) const {
  const KernelPoint point = point_of(kernel);
  const Coordinates here = coordinates_of(point);
  const double base = base_of(features_of(point));
  double weights = std::pow(kOwnReach, -kPower), sum = 0;
  for (const Known& known : known_) {
    double squared = 0;
    for (std::size_t i = 0; i < here.size(); ++i)
      squared += (here[i] - known.at[i]) * (here[i] - known.at[i]);
    squared += kBlur * kBlur;
    const double weight = 1 / (squared * std::sqrt(squared));
    static_assert(kPower == 3);
    weights += weight;
    sum += weight * known.log_correction;
  }
  return Seconds(base * std::exp(sum / weights));
}

}  // namespace meshwright
