/// The CPU kernels by instruction-set level. Internal to this folder and its tests.
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

/// Levels built into this program that this processor can run, slowest first; products by Eigen.
std::vector<CpuLevel> runnable_cpu_levels();

/// Same, plus "onednn" if built: all products that oneDNN supports here. For tests and benchmarks.
std::vector<CpuLevel> cpu_variants();

/// The fastest level, with products by oneDNN where it is faster.
KernelTable fastest_cpu_table();
std::string products_by();  ///< "Eigen", "oneDNN 2.6.3"

}  // namespace meshwright
