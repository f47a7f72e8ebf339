/// Measured curves of collectives and measured kernels in front of another cost model.
#pragma once

#include <memory>

#include "core/calibration.hpp"
#include "core/cost_model.hpp"

namespace meshwright {

/// A collective whose kind, ranks, nodes and groups at once were measured has its time from the
/// curve; all else is priced by `base`. Beyond the ends of a curve the time is base's, times what
/// the nearest end was measured at over what base says of it: the shape is base's, the level
/// measured. A kernel whose family was measured has its time from the points
/// (kernel_curve_fit.hpp). The calibration must be sound (check_calibration).
std::unique_ptr<CostModel> make_calibrated_cost_model(std::unique_ptr<CostModel> base,
                                                      Calibration calibration);

}  // namespace meshwright
