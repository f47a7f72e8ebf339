/// Products by oneDNN. Internal to this folder.
#pragma once

#include <string>

#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Which products oneDNN computes; Eigen computes the others.
enum class OneDnnUse : std::uint8_t {
  kFaster,   ///< those for which it is faster on this processor
  kPossible  ///< all that it supports here; for tests and benchmarks
};

/// The fastest of runnable_cpu_levels(), with products by oneDNN according to `use`.
KernelTable onednn_table(OneDnnUse use);

/// "oneDNN 2.6.3", or empty if it is not used on this processor.
std::string onednn_summary(OneDnnUse use);

}  // namespace meshwright
