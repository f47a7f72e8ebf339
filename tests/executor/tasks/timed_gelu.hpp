/// Kernels and their times, for tests of measurements.
#pragma once

#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"

namespace meshwright {

inline Kernel gelu(std::int64_t bytes) {
  Kernel kernel;
  kernel.routine = Routine::kGelu;
  kernel.memory_traffic = Bytes(bytes);
  return kernel;
}
inline std::vector<Ticks> seconds(const std::vector<int>& values) {
  std::vector<Ticks> times;
  for (const int value : values) times.push_back(value * to_ticks(Seconds(1)));
  return times;
}

}  // namespace meshwright
