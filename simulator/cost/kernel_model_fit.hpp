/// Kernel times of a GPU at any shape from measurements at a few shapes, for one family of kernels.
/// The device model (kernel_time.hpp) knows how times grow with the shape; measured are what it
/// cannot know: the fixed cost of a call with all of its launches, and how fast this library is.
///
///   time = (a model + c) * correction
///   a, c >= 0: least squares of (a model + c) / measured - 1, where the model itself counts like
///              five points with a = 1: small shapes alone say little about a
///   correction: LocalCorrections (kernel_distance.hpp)
///
/// Worked number: kernels of 1 us and 100 us by the model, measured with 6 us and 105 us, have
/// a = 1 and c = 5 us; one of 10 ms by the model takes 10.005 ms.
///
/// Validation on an H200, from probes of hidden size 512: steps of Llama 3.2 1B (2,048) are
/// predicted within 2 %, while formulas fitted without the model were off by 159 %
/// (executor/results/2026-11-28-h200).
#pragma once

#include "core/cost/cost_model.hpp"
#include "simulator/cost/kernel_distance.hpp"

namespace meshwright {

class KernelModelFit {
 public:
  /// The curve must be valid (check_calibration). O(points).
  KernelModelFit(const KernelCurve& curve, const CostModel& model);

  /// Time of a kernel of the curve's family with pieces = 1, by the same model. O(points), no
  /// allocation.
  Seconds time_of(const Kernel& kernel, const CostModel& model) const;

 private:
  KernelKind kind_;
  double factor_ = 1;
  Seconds fixed_;
  LocalCorrections corrections_;
};

}  // namespace meshwright
