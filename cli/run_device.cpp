#include "cli/run_device.hpp"

#include <algorithm>

#include "executor/mpi_job.hpp"
#include "kernels/cuda_library.hpp"

namespace meshwright {
namespace {

bool has_gpu_each(const RunFlags& flags) {
  return flags.device == "cuda" && (flags.ranks == "mpi" || flags.ranks == "nccl");
}

/// Threads share one GPU, processes of a job have one each.
void check_flags(const RunFlags& flags) {
  if (flags.kernels != "cpu")
    throw InputError(Diagnostic{"--kernels", "the plain kernels run on the processor",
                                "leave out --device cuda, or --kernels"});
  if (flags.ranks == "processes")
    throw InputError(Diagnostic{"--ranks", "processes that fork cannot use a GPU",
                                "leave out --ranks to share one, or --ranks nccl for one each"});
  if (flags.ranks == "job")
    throw InputError(
        Diagnostic{"--ranks", "processes with a GPU each meet by NCCL", "use --ranks nccl"});
  if (has_gpu_each(flags) && flags.clock != "wall")
    throw InputError(Diagnostic{"--clock", "ranks with a GPU each go by the machine's clock",
                                "add --clock wall"});
}

}  // namespace

const KernelTable& kernels_of_device(const std::string& device) {
  if (device != "cuda") return kernel_table(Backend::kCpu);
  const CudaLibrary& library = cuda_library();
  if (!library.missing.empty())
    throw RuntimeFailure({.where = "--device cuda",
                          .what = library.missing,
                          .hint = "leave out --device to use this machine's cores"});
  return library.exports->kernels;
}

const DeviceTable* device_of(const std::string& device) {
  return device == "cuda" ? &cuda_library().exports->device : nullptr;
}

const NcclTable* nccl_for_run(const RunFlags& flags) {
  if (!has_gpu_each(flags)) return nullptr;
  const NcclTable* table = nccl_table();
  const std::string missing =
      table == nullptr ? "the GPU plug-in was built without NCCL's header" : table->missing();
  if (!missing.empty())
    throw RuntimeFailure({.where = "--ranks " + flags.ranks,
                          .what = missing,
                          .hint = "install NCCL, or share one GPU by --ranks threads"});
  return table;
}

int gpu_of_process() {
  const int devices = std::max(1, cuda_library().exports->device.count());
  return local_rank_in_environment() % devices;
}

const KernelTable& kernels_for_run(const RunFlags& flags) {
  if (flags.device == "cuda") check_flags(flags);
  if (flags.ranks == "nccl" && flags.device != "cuda")
    throw InputError(
        Diagnostic{"--ranks", "NCCL is for ranks with a GPU each",
                   "add --device cuda, or use --ranks job for processes without GPUs"});
  if (flags.kernels == "reference") return kernel_table(Backend::kReference);
  return kernels_of_device(flags.device);
}

std::string kernels_text(const std::string& device) {
  if (device != "cuda") return kernels_summary();
  const DeviceDescription gpu = cuda_library().exports->device.describe(0);
  return gpu.name + ", " + gpu.driver + ", " + gpu.identity;
}

}  // namespace meshwright
