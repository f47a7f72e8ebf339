/// Products by oneDNN. Internal to this folder.
#pragma once

#include <string>

#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Which products oneDNN is asked for; the rest goes to the table below.
enum class OneDnnUse : std::uint8_t {
  kFaster,   ///< those that it is faster at on this processor
  kPossible  ///< all that it can do here: for tests and comparisons
};

/// The fastest of runnable_cpu_levels(), with products by oneDNN where that is used.
KernelTable onednn_table(OneDnnUse use);

/// "oneDNN 2.6.3", or empty where it is not used on this processor.
std::string onednn_summary(OneDnnUse use);

}  // namespace meshwright
