/// The CUDA kernels on the emulated GPU (gpu.hpp), as a table.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright {

const KernelTable& emulated_table();

/// Staged as for a GPU: every argument is copied into memory followed by a guard page, and working
/// memory of exactly the requested size is filled with NaN. Threads run one after the other, in
/// ascending or descending order.
KernelTable emulated_kernels(bool descending_order);

}  // namespace meshwright
