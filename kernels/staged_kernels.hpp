/// The kernels of a device for arguments in the host's memory: every call copies what its arguments
/// view to the device, runs there with exactly the working memory that was asked for, filled with
/// NaN, and copies back what may have been written.
///
/// This is how the executor's ranks, whose memory is the host's, compute on a GPU: every kernel for
/// real and alone on the device, one rank after the other, timed there by events. The copies are
/// not counted. Tests run every case in this way.
#pragma once

#include "core/units.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// kCuda: the plug-in's kernels; nothing may be called where cuda_library().missing is not empty.
/// kCpu: the cpu kernels with the host as the device, which checks the staging itself.
KernelTable staged_kernels(Backend backend);

/// What the staged kernels that the calling thread ran took on their device, in all.
Seconds staged_time();

}  // namespace meshwright
