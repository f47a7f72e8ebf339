/// The cuda kernels on the emulated GPU (gpu.hpp), as a table.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright {

const KernelTable& emulated_table();

/// Staged as for a GPU: every argument travels into memory that ends where a page begins that
/// nobody may touch, working memory of exactly the size asked for is NaN. Threads run one after the
/// other, the last one first if the order falls.
KernelTable emulated_kernels(bool falling_order);

}  // namespace meshwright
