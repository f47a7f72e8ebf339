/// Kernel times at any shape from measurements at a few shapes, for one family of kernels.
///
/// A formula is fitted to the points, and its errors are interpolated:
///
///   time  = base * correction
///   base  = sum of c_j f_j, c_j >= 0, least squares of base / measured - 1
///           products    f = b m n k, b m k, b k n, b m n, b, 1: arithmetic, reading and packing
///                       each operand, writing the result, fixed cost per product and per call
///           attention   f = flop, b (m + n) k, b m n, b, 1: b m n for the exponentials
///           others      f = bytes, 1
///   correction: LocalCorrections (kernel_distance.hpp)
///
/// At a measured shape the time is the measured one. Worked number: a kernel measured at 1,000
/// bytes in 3 s and at 4,000 bytes in 9 s is fitted exactly by 1 s + 2 ms per byte; 2,000 bytes
/// take 5 s.
#pragma once

#include <array>
#include <vector>

#include "simulator/cost/kernel_distance.hpp"

namespace meshwright {

class KernelCurveFit {
 public:
  /// The curve must be valid (check_calibration). O(points).
  explicit KernelCurveFit(const KernelCurve& curve);

  /// Time of a kernel of the curve's family with pieces = 1. O(points), no allocation.
  Seconds time_of(const Kernel& kernel) const;

  static constexpr int kMostFeatures = 6;
  using Features = std::array<double, kMostFeatures>;  ///< zero where the family has fewer

 private:
  Features features_of(const KernelPoint& point) const;
  double base_of(const Features& features) const;
  KernelKind kind_;
  Features coefficients_{};
  LocalCorrections corrections_;
};

}  // namespace meshwright
