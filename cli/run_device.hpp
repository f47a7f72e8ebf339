/// What the ranks of `run` compute on.
#pragma once

#include "cli/commands.hpp"
#include "executor/nccl.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Throws RuntimeFailure (exit code 4) with what is missing where --device asks for a GPU that
/// cannot be used, InputError where other flags do not go with it.
const KernelTable& kernels_for_run(const RunFlags& flags);

/// The kernels of --device: "cpu", or "cuda" where a GPU can be used (else RuntimeFailure).
const KernelTable& kernels_of_device(const std::string& device);
/// Whose memory those take; null: that of the host. To be asked behind kernels_of_device().
const DeviceTable* device_of(const std::string& device);
/// How ranks with a GPU each meet; null: they do not. RuntimeFailure where NCCL cannot be used.
const NcclTable* nccl_for_run(const RunFlags& flags);
/// Which GPU of this machine is this process's: processes take them in turn.
int gpu_of_process();
/// For provenance: the processor's kernels, or the device by name, driver and identity.
std::string kernels_text(const std::string& device);

}  // namespace meshwright
