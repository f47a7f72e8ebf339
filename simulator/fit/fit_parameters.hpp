/// The parameters of a device as variables of a least-squares problem.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/cluster/device.hpp"

namespace meshwright {

/// A parameter and the range that a fit may choose from, which is narrower than what is valid.
struct FitParameter {
  std::string key;  ///< in a device file: "gemm.max_efficiency"
  double least = 0, most = 1;
};

/// Parameters that the same kernels depend on.
enum class ParameterGroup : std::uint8_t {
  kLaunch,
  kGemm,
  kForward,   ///< attention
  kBackward,  ///< attention
  kFlashAttention2,
  kStreams  ///< the first of one group per StreamFamily
};
inline constexpr int kParameterGroupCount =
    static_cast<int>(ParameterGroup::kStreams) + kStreamFamilyCount;

struct FitGroup {
  std::vector<FitParameter> parameters;
  std::function<std::vector<double>(const DeviceModel&)> get;         ///< all values, in order
  std::function<void(DeviceModel&, const std::vector<double>&)> set;  ///< all values, in order
};
FitGroup fit_group(int group);

/// The groups that the time of a kernel depends on.
std::vector<int> groups_of(const Kernel& kernel, bool flash_attention_2);

}  // namespace meshwright
