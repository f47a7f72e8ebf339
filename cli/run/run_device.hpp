/// The device that the ranks of `run` compute on.
#pragma once

#include "cli/run/run_flags.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// RuntimeFailure (exit code 4) if --device cuda cannot be used; InputError if it conflicts with
/// other flags.
const KernelTable& kernels_for_run(const RunFlags& flags);

/// The kernels of --device "cpu" or "cuda". RuntimeFailure if no GPU can be used.
const KernelTable& kernels_of_device(const std::string& device);
/// The device that holds the memory of the kernels; null: the host. Call kernels_of_device() first.
const DeviceTable* device_of(const std::string& device);
/// NCCL, for ranks with one GPU each; null for other ranks. RuntimeFailure if NCCL cannot be used.
const NcclTable* nccl_for_run(const RunFlags& flags);
/// The GPU of this process: local rank modulo the number of GPUs.
int gpu_of_process();
/// For provenance: the CPU kernels, or the GPU's name, driver and identity.
std::string kernels_text(const std::string& device);

}  // namespace meshwright
