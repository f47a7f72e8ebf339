/// Times of one family of kernels at any shape, from times at some.
///
/// A formula is fitted to the points, and what it misses is interpolated:
///
///   time  = base * correction
///   base  = sum of c_j f_j, c_j >= 0 with the least sum of squares of base / measured - 1
///           products    f = b m n k, b m k, b k n, b m n, b, 1: arithmetic, reading and packing of
///                       each operand, writing the result, a product's and a call's fixed costs
///           attention   f = flop, b (m + n) k, b m n, b, 1: the scores' exponentials are b m n
///           all others  f = bytes, 1
///   correction = exp(sum w_i ln(measured_i / base_i) / (w_0 + sum w_i)), w = 1 / d^3, d the
///           distance in doublings of b, m, n, k (all others: of bytes) (Shepard, "A
///           two-dimensional interpolation function for irregularly-spaced data", 1968); w_0 stands
///           for a point without correction three doublings away, so that far from all points base
///           is left alone. Attention has a fifth axis, four doublings for each of bytes / (b (m +
///           n) k): query heads that share keys and values read less, and are faster
///
/// At a measured shape the time is the measured one. Worked number: a kernel measured at 1,000
/// bytes in 3 s and at 4,000 bytes in 9 s is fitted exactly by 1 s + 2 ms per byte; 2,000 bytes
/// take 5 s.
#pragma once

#include <array>
#include <vector>

#include "core/calibration.hpp"

namespace meshwright {

class KernelCurveFit {
 public:
  /// The curve must be sound (check_calibration). O(points).
  explicit KernelCurveFit(const KernelCurve& curve);

  /// Of a kernel of the curve's family, done in one piece. O(points), no allocation.
  Seconds time_of(const Kernel& kernel) const;

  static constexpr int kMostFeatures = 6, kMostAxes = 5;
  using Features = std::array<double, kMostFeatures>;  ///< those that the family has not are zero
  using Coordinates = std::array<double, kMostAxes>;   ///< in doublings

 private:
  struct Known {
    Coordinates at;
    double log_correction = 0;
  };
  Features features_of(const KernelPoint& point) const;
  Coordinates coordinates_of(const KernelPoint& point) const;
  double base_of(const Features& features) const;
  KernelKind kind_;
  Features coefficients_{};
  std::vector<Known> known_;
};

}  // namespace meshwright
