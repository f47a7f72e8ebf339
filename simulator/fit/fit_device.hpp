/// Fits the parameters of a device's kernel models (core/cluster/device.hpp) to measured kernels.
///
/// One bounded least-squares problem per device over all kernels (Ceres, Levenberg-Marquardt):
/// minimizes sum of rho(ln(predicted / measured)) with rho(s) = the soft L1 loss beyond 5 %, so
/// that a few odd rows do not decide. Each kernel is priced in the PowerState in which it was
/// measured. A parameter that fewer than 4 kernels depend on keeps its value of `start`; a weak
/// pull towards that value (its whole range counts as much as one kernel that is 5 % off) decides
/// between equally good ones.
///
/// Beside the device, constants of sources are fitted where the method adds something: the host
/// time in each time of method `host`, the cost of conversions and copies that a time contains, and
/// a factor for attention of inference programs where others measured that of training programs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/cluster/device.hpp"
#include "simulator/fit/measured_kernels.hpp"

namespace meshwright {

/// Of |predicted / measured - 1|; `bias` is the median of predicted / measured - 1.
struct ErrorFigures {
  int kernels = 0;
  double median = 0, p90 = 0, bias = 0;
};
/// Of predicted / measured - 1.
ErrorFigures figures_of(std::vector<double> errors);

struct FamilyError {
  std::string family;
  ErrorFigures fitted, held_back;
};

struct DeviceFit {
  DeviceModel device;
  std::map<std::string, std::string> sources;  ///< of the fitted parameters, by their TOML keys
  std::vector<FamilyError> families;           ///< by name
  std::vector<std::string> notes;              ///< the constants of sources
};

/// `holdout`: fraction of the shapes, chosen by their hash, whose errors are reported from a second
/// fit that does not see them; 0: none. The returned device is fitted to all kernels.
/// Deterministic. About a second for a thousand kernels.
DeviceFit fit_device(const DeviceModel& start, const std::vector<MeasuredKernel>& kernels,
                     double holdout);

}  // namespace meshwright
