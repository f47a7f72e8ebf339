/// The cpu kernels by level of the processor. Internal to this folder and its tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_table.hpp"

namespace meshwright {

struct CpuLevel {
  std::string_view name;  ///< "generic", "avx2", "avx512"
  KernelTable table;
};

/// Levels that were built and that this processor can run, slowest first; products by Eigen.
std::vector<CpuLevel> runnable_cpu_levels();

/// The same, and "onednn" where it was built: every product that oneDNN can do here. For tests and
/// comparisons.
std::vector<CpuLevel> cpu_variants();

/// The fastest level, with products by oneDNN where those are faster.
KernelTable fastest_cpu_table();
std::string products_by();  ///< "Eigen", "oneDNN 2.6.3"

}  // namespace meshwright
