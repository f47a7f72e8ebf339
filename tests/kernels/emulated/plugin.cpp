// The GPU plug-in for programs, with the emulated GPU in place of a real one: as slow as its
// emulation, one kernel at a time, with 1 GiB of memory by its own account.
#include <mutex>

#include "kernels/cuda/kernels.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "kernels/for_each_kernel.hpp"

namespace meshwright {
namespace {

std::mutex& gpu_mutex() {
  static std::mutex mutex;
  return mutex;
}

template <auto kKernel, class Arguments>
void run(const Launch& launch, const Arguments& arguments) {
  static const KernelTable table = cuda::table();
  const std::lock_guard lock(gpu_mutex());
  (table.*kKernel).run(launch, arguments);
}
template <auto kKernel, class Arguments>
Bytes scratch(const Arguments& arguments) {
  static const KernelTable table = cuda::table();
  return (table.*kKernel).scratch_bytes(arguments);
}

DeviceTable device() {
  DeviceTable t = host_device();
  t.backend = Backend::kCuda;
  t.free_memory = t.memory = [] { return Bytes(std::int64_t{1} << 30); };
  t.describe = [](int) {
    DeviceDescription d;
    d.name = "Emulated GPU";
    d.memory = d.free_memory = Bytes(std::int64_t{1} << 30);
    d.multiprocessors = 1;
    d.major = 9;
    d.driver = "no driver";
    d.libraries = "emulated cuBLASLt";
    d.state = "no clocks";
    return d;
  };
  return t;
}

}  // namespace
}  // namespace meshwright

extern "C" __attribute__((visibility("default"))) const meshwright::PluginExports*
meshwright_exports() {
  using namespace meshwright;  // NOLINT: one function, of no namespace
  static const PluginExports exports{
      .kernels = make_table(Backend::kCuda,
                            []<class Row>(Row) {
                              using Arguments = typename Row::Arguments;
                              return KernelEntry<Arguments>{run<Row::entry, Arguments>,
                                                            scratch<Row::entry, Arguments>};
                            }),
      .device = device()};
  return &exports;
}
