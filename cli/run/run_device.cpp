#include "cli/run/run_device.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/launch/mpi_job.hpp"
#include "kernels/device/cuda_library.hpp"

namespace meshwright {
namespace {

bool has_gpu_each(const RunFlags& flags) {
  return flags.device == "cuda" && (flags.ranks == "mpi" || flags.ranks == "nccl");
}

/// Threads share one GPU; processes of a job use one each.
void check_flags(const RunFlags& flags) {
  if (flags.kernels != "cpu")
    throw InputError(Diagnostic{"--kernels", "cannot be combined with '--device cuda'",
                                "remove --kernels, or use --device cpu"});
  if (flags.ranks == "processes")
    throw InputError(
        Diagnostic{"--ranks",
                   "'--ranks processes' cannot be combined with '--device cuda': "
                   "forked processes cannot use a GPU",
                   "use --ranks threads to share a GPU, or --ranks nccl for one each"});
  if (flags.ranks == "job")
    throw InputError(Diagnostic{"--ranks", "'--ranks job' cannot be combined with '--device cuda'",
                                "use --ranks nccl"});
  if (has_gpu_each(flags) && flags.clock != "wall")
    throw InputError(Diagnostic{
        "--clock", fmt::format("must be wall for --device cuda with --ranks {}", flags.ranks),
        "add --clock wall"});
}

}  // namespace

const KernelTable& kernels_of_device(const std::string& device) {
  if (device != "cuda") return kernel_table(Backend::kCpu);
  const CudaLibrary& library = cuda_library();
  if (!library.missing.empty())
    throw RuntimeFailure(
        {.where = "--device cuda", .what = library.missing, .hint = "use --device cpu"});
  return library.exports->kernels;
}

const DeviceTable* device_of(const std::string& device) {
  return device == "cuda" ? &cuda_library().exports->device : nullptr;
}

const NcclTable* nccl_for_run(const RunFlags& flags) {
  if (!has_gpu_each(flags)) return nullptr;
  const NcclTable* table = nccl_table();
  const std::string missing =
      table == nullptr ? "the GPU plug-in was built without NCCL" : table->missing();
  if (!missing.empty())
    throw RuntimeFailure({.where = "--ranks " + flags.ranks,
                          .what = missing,
                          .hint = "install NCCL, or use --ranks threads to share one GPU"});
  return table;
}

int gpu_of_process() {
  const int devices = std::max(1, cuda_library().exports->device.count());
  return local_rank_in_environment() % devices;
}

const KernelTable& kernels_for_run(const RunFlags& flags) {
  if (flags.device == "cuda") check_flags(flags);
  if (flags.ranks == "nccl" && flags.device != "cuda")
    throw InputError(Diagnostic{"--ranks", "'--ranks nccl' requires '--device cuda'",
                                "add --device cuda, or use --ranks job to run on CPUs"});
  if (flags.kernels == "reference") return kernel_table(Backend::kReference);
  return kernels_of_device(flags.device);
}

std::string kernels_text(const std::string& device) {
  if (device != "cuda") return kernels_summary();
  const DeviceDescription gpu = cuda_library().exports->device.describe(0);
  return gpu.name + ", " + gpu.driver + ", " + gpu.identity;
}

}  // namespace meshwright
