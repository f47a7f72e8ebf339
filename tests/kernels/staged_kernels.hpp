/// The cuda kernels for tests whose memory is the host's: every call copies what its arguments view
/// to the device, runs there with exactly the working memory that was asked for, filled with NaN,
/// and copies back what may have been written.
#pragma once

#include <string>

#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Why no cuda kernel can run here; empty: they can.
std::string cuda_is_missing();

/// Of no use where cuda_is_missing().
KernelTable staged_cuda_table();

}  // namespace meshwright
