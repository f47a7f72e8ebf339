/// The cpu kernels by level of the processor. Internal to this folder and its tests.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/kernel_table.hpp"

namespace meshwright {

struct CpuLevel {
  std::string_view name;  ///< "generic", "avx2", "avx512"
  KernelTable table;
};

/// Levels that were built and that this processor can run, slowest first.
std::vector<CpuLevel> runnable_cpu_levels();

}  // namespace meshwright
