/// The device that the ranks of `run` compute on.
#pragma once

#include <string>
#include <vector>

#include "cli/run/run_flags.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/device/activity.hpp"
#include "kernels/device/ranges.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Choices of --device: the back ends that train.
std::vector<std::string> device_names();
/// Whether tensors are in the memory of a GPU.
bool is_gpu(const std::string& device);
/// Whether every rank has a GPU of its own; else all ranks share the first one.
bool has_gpu_each(const RunFlags& flags);
/// Choices of --device for which is_gpu() holds: "cuda".
std::string gpu_names();

/// RuntimeFailure (exit code 4) if the device cannot be used; InputError if it conflicts with other
/// flags.
const KernelTable& kernels_for_run(const RunFlags& flags);

/// Why the device cannot be used; empty: it can.
std::string missing_of_device(const std::string& device);
/// The kernels of --device. RuntimeFailure if no such GPU can be used.
const KernelTable& kernels_of_device(const std::string& device);
/// The device that holds the memory of the kernels; null: the host. Call kernels_of_device() first.
const DeviceTable* device_of(const std::string& device);
/// NCCL, for ranks with one GPU each; null for other ranks. RuntimeFailure if NCCL cannot be used.
const NcclTable* nccl_for_run(const RunFlags& flags);
/// The GPU of this process: local rank modulo the number of GPUs.
int gpu_of_process(const std::string& device);
/// Kernels and copies of a GPU as its plug-in records them; null if it cannot.
const ActivityTable* activity_table_of(const std::string& device);
/// For profilers: null unless one is attached to this process (NVTX_INJECTION64_PATH).
const RangeTable* ranges_for_run(const std::string& device);
/// For provenance: the CPU kernels, or the GPU's name, driver and identity.
std::string kernels_text(const std::string& device);

}  // namespace meshwright
