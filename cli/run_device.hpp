/// What the ranks of `run` compute on.
#pragma once

#include "cli/commands.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Throws RuntimeFailure (exit code 4) with what is missing where --device asks for a GPU that
/// cannot be used, InputError where other flags do not go with it.
const KernelTable& kernels_for_run(const RunFlags& flags);

/// The kernels of --device: "cpu", or "cuda" where a GPU can be used (else RuntimeFailure).
const KernelTable& kernels_of_device(const std::string& device);
/// For provenance: the processor's kernels, or the device by name, driver and identity.
std::string kernels_text(const std::string& device);

}  // namespace meshwright
