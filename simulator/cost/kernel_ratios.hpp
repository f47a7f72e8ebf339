/// Kernel times near the measured shapes of a training job, for one family of kernels.
///
/// At a measured shape the time is the measured one: products and attention by batch, m, n and k,
/// updates by m, others by bytes. Elsewhere it is base's time, corrected as at nearby shapes:
///
///   time = base * exp((w_0 r_mean + sum w_i r_i) / (w_0 + sum w_i)),  r_i = ln(measured_i /
///   base_i)
///
/// with weights by the distance of these sizes in doublings (kernel_distance.hpp), and w_0 that of
/// a point three doublings away with the mean r. A job has few shapes per family, too few to fit a
/// formula of their own. Worked number: one measured point at twice base's time doubles every other
/// time of the family.
#pragma once

#include <vector>

#include "core/cost/calibration.hpp"
#include "core/cost/cost_model.hpp"

namespace meshwright {

class KernelRatios {
 public:
  /// The curve must be valid (check_calibration).
  explicit KernelRatios(KernelCurve curve);

  /// Time of a kernel of the curve's family with pieces = 1. O(points) calls of base, which must
  /// support the family's dtype.
  Seconds time_of(const Kernel& kernel, const CostModel& base) const;

 private:
  KernelCurve curve_;
};

}  // namespace meshwright
