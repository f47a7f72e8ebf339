/// Kernels of a device that also accept arguments in host memory. These are copied to the device
/// for each call and, if writable, back.
///
/// The executor's ranks run queued kernels on a GPU: memory of their DeviceQueue is used in place,
/// so tensors stay on the device. Staged kernels have no such memory: every argument is copied, and
/// each call is timed and gets exactly the working memory it asks for, filled with NaN. Tests run
/// every case in this way.
#pragma once

#include "core/base/units.hpp"
#include "kernels/device/queue.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// The kernels of a plug-in must not be called unless backend_plugin(backend).missing is empty. Of
/// other back ends: with the host as the device, which tests the staging itself.
KernelTable staged_kernels(Backend backend);

/// Launch::stream must be a DeviceQueue, whose kernels, device and timing are used; Launch::scratch
/// is ignored. `backend` becomes KernelTable::backend.
KernelTable queued_kernels(Backend backend);

/// Total device time of all timed kernels that the calling thread has run.
Seconds staged_time();

}  // namespace meshwright
