/// Distances between kernels of one family, and weights of measured kernels by distance (Shepard,
/// "A two-dimensional interpolation function for irregularly-spaced data", 1968).
#pragma once

#include <array>

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

/// Distance, in doublings, at which an uncorrected point keeps the correction local.
inline constexpr double kCorrectionReach = 3;

}  // namespace meshwright
