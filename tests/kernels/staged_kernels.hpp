/// The kernels of a device for tests whose memory is the host's: every call copies what its
/// arguments view to the device, runs there with exactly the working memory that was asked for,
/// filled with NaN, and copies back what may have been written.
#pragma once

#include <string>

#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Why no cuda kernel can run here; empty: they can.
std::string cuda_is_missing();

/// Of no use where cuda_is_missing().
KernelTable staged_cuda_table();
/// The cpu kernels in the same way, with the host as the device: checks the staging itself.
KernelTable staged_host_table();

}  // namespace meshwright
