#include "cli/run/run_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/base/check.hpp"
#include "executor/launch/mpi_job.hpp"
#include "kernels/device/backend_plugin.hpp"

namespace meshwright {
namespace {

Backend backend_of(const std::string& device) {
  const std::optional<Backend> backend = backend_from_name(device);
  MW_CHECK(backend.has_value());
  return *backend;
}

/// Threads share one GPU; processes of a job use one each.
void check_gpu_flags(const RunFlags& flags) {
  const std::string device = "--device " + flags.device;
  if (flags.kernels != "cpu")
    throw InputError(Diagnostic{"--kernels", fmt::format("cannot be combined with '{}'", device),
                                "remove --kernels, or use --device cpu"});
  if (flags.ranks == "processes")
    throw InputError(
        Diagnostic{"--ranks",
                   fmt::format("'--ranks processes' cannot be combined with '{}': "
                               "forked processes cannot use a GPU",
                               device),
                   "use --ranks threads to share a GPU, or --ranks nccl for one each"});
  if (flags.ranks == "job")
    throw InputError(Diagnostic{"--ranks",
                                fmt::format("'--ranks job' cannot be combined with '{}'", device),
                                "use --ranks nccl"});
  if (has_gpu_each(flags) && flags.clock != "wall")
    throw InputError(Diagnostic{
        "--clock", fmt::format("must be wall for {} with --ranks {}", device, flags.ranks),
        "add --clock wall"});
}

}  // namespace

bool has_gpu_each(const RunFlags& flags) {
  return is_gpu(flags.device) && (flags.ranks == "mpi" || flags.ranks == "nccl");
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const BackendTraits& backend : kBackends)
    if (backend.backend != Backend::kReference) names.emplace_back(backend.name);
  return names;
}

bool is_gpu(const std::string& device) { return has_device_memory(backend_of(device)); }

std::string gpu_names() {
  std::vector<std::string> names = device_names();
  std::erase_if(names, [](const std::string& name) { return !is_gpu(name); });
  return fmt::format("{}", fmt::join(names, "|"));
}

std::string missing_of_device(const std::string& device) {
  return is_gpu(device) ? backend_plugin(backend_of(device)).missing : "";
}

const KernelTable& kernels_of_device(const std::string& device) {
  if (!is_gpu(device)) return kernel_table(backend_of(device));
  if (const std::string missing = missing_of_device(device); !missing.empty())
    throw RuntimeFailure(
        {.where = "--device " + device, .what = missing, .hint = "use --device cpu"});
  return backend_plugin(backend_of(device)).exports->kernels;
}

const DeviceTable* device_of(const std::string& device) {
  return is_gpu(device) ? &backend_plugin(backend_of(device)).exports->device : nullptr;
}

const NcclTable* nccl_for_run(const RunFlags& flags) {
  if (!has_gpu_each(flags)) return nullptr;
  const NcclTable* table = nccl_table(backend_of(flags.device));
  const std::string missing =
      table == nullptr ? "the GPU plug-in was built without NCCL" : table->missing();
  if (!missing.empty())
    throw RuntimeFailure({.where = "--ranks " + flags.ranks,
                          .what = missing,
                          .hint = "install NCCL, or use --ranks threads to share one GPU"});
  return table;
}

int gpu_of_process(const std::string& device) {
  return local_rank_in_environment() % std::max(1, device_of(device)->count());
}

const ActivityTable* activity_table_of(const std::string& device) {
  return activity_table(backend_of(device));
}

const RangeTable* ranges_for_run(const std::string& device) {
  if (!is_gpu(device) || std::getenv("NVTX_INJECTION64_PATH") == nullptr) return nullptr;
  return range_table(backend_of(device));
}

const KernelTable& kernels_for_run(const RunFlags& flags) {
  if (is_gpu(flags.device)) check_gpu_flags(flags);
  if (flags.ranks == "nccl" && !is_gpu(flags.device))
    throw InputError(
        Diagnostic{"--ranks", fmt::format("'--ranks nccl' requires '--device {}'", gpu_names()),
                   fmt::format("add --device {}, or use --ranks job to run on CPUs", gpu_names())});
  if (flags.kernels == "reference") return kernel_table(Backend::kReference);
  return kernels_of_device(flags.device);
}

std::string kernels_text(const std::string& device) {
  if (!is_gpu(device)) return kernels_summary();
  const DeviceDescription gpu = device_of(device)->describe(0);
  return gpu.name + ", " + gpu.driver + ", " + gpu.identity;
}

}  // namespace meshwright
