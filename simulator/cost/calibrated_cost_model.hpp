/// Cost model that uses measured collectives and kernels where there are any, and another cost
/// model elsewhere.
#pragma once

#include <memory>

#include "core/cost/calibration.hpp"
#include "core/cost/cost_model.hpp"

namespace meshwright {

/// A collective is interpolated on the measured curve of its kind, ranks, nodes and concurrent
/// groups, if there is one. Outside the measured sizes, base's time is scaled by measured / base at
/// the nearest end of the curve. A kernel is priced from the measured points of its family
/// (kernel_curve_fit.hpp; of a training job: kernel_ratios.hpp). Everything else is priced by
/// `base`. If the calibration has a trainer, host times are the measured ones. The calibration must
/// be valid (check_calibration).
std::unique_ptr<CostModel> make_calibrated_cost_model(std::unique_ptr<CostModel> base,
                                                      Calibration calibration);

}  // namespace meshwright
