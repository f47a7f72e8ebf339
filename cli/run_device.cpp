#include "cli/run_device.hpp"

#include "kernels/cuda_library.hpp"
#include "kernels/staged_kernels.hpp"

namespace meshwright {
namespace {

/// All ranks share one GPU, one kernel at a time; its time is measured, and nothing else is.
void check_flags(const RunFlags& flags) {
  if (flags.kernels != "cpu")
    throw InputError(Diagnostic{"--kernels", "the plain kernels run on the processor",
                                "leave out --device cuda, or --kernels"});
  if (flags.ranks != "threads")
    throw InputError(Diagnostic{"--ranks", "ranks that share a GPU are threads of one process",
                                "leave out --ranks"});
  if (flags.clock == "wall")
    throw InputError(Diagnostic{"--clock",
                                "copies to and from the GPU would be measured as well: the wall "
                                "clock says nothing here",
                                "use --clock virtual, which takes every kernel's time on the GPU"});
}

}  // namespace

const KernelTable& kernels_of_device(const std::string& device) {
  if (device != "cuda") return kernel_table(Backend::kCpu);
  const CudaLibrary& library = cuda_library();
  if (!library.missing.empty())
    throw RuntimeFailure({.where = "--device cuda",
                          .what = library.missing,
                          .hint = "leave out --device to use this machine's cores"});
  static const KernelTable staged = staged_kernels(Backend::kCuda);
  return staged;
}

const KernelTable& kernels_for_run(const RunFlags& flags) {
  if (flags.device == "cuda") check_flags(flags);
  if (flags.kernels == "reference") return kernel_table(Backend::kReference);
  return kernels_of_device(flags.device);
}

std::string kernels_text(const std::string& device) {
  if (device != "cuda") return kernels_summary();
  const DeviceDescription gpu = cuda_library().exports->device.describe(0);
  return gpu.name + ", " + gpu.driver + ", " + gpu.identity;
}

}  // namespace meshwright
