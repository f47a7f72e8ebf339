/// The kernels of a device for arguments that lie anywhere. What lies in memory of the host is
/// copied to the device for each call and, where it may have been written, back.
///
/// This is how the executor's ranks compute on a GPU. Queued kernels take the memory of their
/// DeviceQueue as it is: tensors stay on the device. Staged kernels know no such memory: every
/// argument travels, each call gets exactly the working memory that it asks for, filled with NaN,
/// and is timed. Tests run every case in this way.
#pragma once

#include "core/units.hpp"
#include "kernels/device_queue.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// kCuda: the plug-in's kernels; nothing may be called where cuda_library().missing is not empty.
/// kCpu: the cpu kernels with the host as the device, which checks the staging itself.
KernelTable staged_kernels(Backend backend);

/// Launch::stream is the DeviceQueue, whose kernels, device and timing they are; Launch::scratch is
/// not used. `backend` is what the table says of itself.
KernelTable queued_kernels(Backend backend);

/// What kernels that were timed took on their device, of those that the calling thread ran, in all.
Seconds staged_time();

}  // namespace meshwright
