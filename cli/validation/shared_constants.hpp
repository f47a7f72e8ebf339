/// The constants that published runs share, and what is known of them before any run is measured.
///
/// A constant belongs to a generation of training programs (models/trainers/pytorch-*.toml) or to
/// a device whose sustained clocks were not measured, never to a model or a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/validation/predict_runs.hpp"

namespace meshwright {

struct SharedConstant {
  std::string file;    ///< "pytorch-2021", "A100": profile, or prefix of device names
  std::string key;     ///< "host.per_kernel"
  double in_file = 1;  ///< in the unit of the file; seconds
  /// The value that is plausible without any measured run, and the standard deviation of
  /// ln(value / typical).
  double typical = 1, spread = 0.5;
  double smallest = 0, largest = 1;  ///< values that are physically possible
  std::function<void(double factor, Trainer& trainer)> scale_trainer = {};
  std::function<void(double factor, DeviceModel& device)> scale_device = {};
};
/// All constants, in the order in which they are reported. Those of devices that no run uses are
/// left out.
std::vector<SharedConstant> shared_constants(const LoadedRuns& runs);

}  // namespace meshwright
