/// Distances between kernels of one family, and weights of measured kernels by distance (Shepard,
/// "A two-dimensional interpolation function for irregularly-spaced data", 1968).
#pragma once

#include <array>
#include <vector>

#include "core/cost/calibration.hpp"

namespace meshwright {

/// In doublings: products and attention by b, m, n and k, others by bytes. Attention has a fifth
/// axis, 4 log2(bytes / (b (m + n) k)), since query heads that share keys and values read less and
/// run faster. Unused axes are 0.
using KernelCoordinates = std::array<double, 5>;
KernelCoordinates coordinates_of(KernelKind kind, const KernelPoint& point);
double squared_distance(const KernelCoordinates& a, const KernelCoordinates& b);

/// 1 / (d^2 + 1/4)^(3/2): points within half a doubling are averaged.
double weight_at(double squared_distance);

/// Distance, in doublings, of a point that stands for everything far from the measured ones.
inline constexpr double kCorrectionReach = 3;

/// Corrections of a formula near measured kernels of one family:
///
///   factor = exp(sum w_i ln(measured_i / formula_i) / (w_0 + sum w_i))
///
/// with weights by distance, and w_0 that of an uncorrected point at kCorrectionReach, so that the
/// formula is not changed far from all points.
class LocalCorrections {
 public:
  /// A kernel measured with `factor` times the formula's time.
  void add(const KernelCoordinates& at, double factor);
  /// O(points), no allocation.
  double factor_at(const KernelCoordinates& here) const;

 private:
  struct Known {
    KernelCoordinates at;
    double log_factor;
  };
  std::vector<Known> known_;
};

}  // namespace meshwright
