#include "tests/kernels/emulated/table.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "core/base/check.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/device/staged_kernels.hpp"
#include "kernels/for_each_kernel.hpp"
#include "tests/kernels/emulated/gpu.hpp"

namespace meshwright {

const KernelTable& emulated_table() {
  static const KernelTable table = cuda::table();
  return table;
}

namespace {

// ---- memory with guard pages --------------------------------------------------------------

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

struct Mapping {  ///< without the guard page
  void* begin;
  std::size_t size;
};
std::map<void*, Mapping>& mappings() {
  static thread_local std::map<void*, Mapping> all;
  return all;
}

void set_access(bool begins) {
  for (const auto& [block, mapping] : mappings())
    MW_CHECK(::mprotect(mapping.begin, mapping.size, begins ? PROT_READ | PROT_WRITE : PROT_NONE) ==
             0);
}

/// Accessible to the device only: host code that runs before a launch must not access it. Aligned
/// to 16 bytes, the alignment that kernels check for.
void* allocate_guarded(Bytes bytes, void*) {
  constexpr std::size_t kAlignment = 16;
  if (bytes.value == 0) return nullptr;
  const std::size_t page = page_size();
  const auto wanted = static_cast<std::size_t>(bytes.value);
  const std::size_t size = (wanted + page - 1) / page * page;
  void* memory = ::mmap(nullptr, size + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MW_CHECK(memory != MAP_FAILED);
  MW_CHECK(::mprotect(memory, size + page, PROT_NONE) == 0);
  void* block =
      static_cast<std::byte*>(memory) + size - (wanted + kAlignment - 1) / kAlignment * kAlignment;
  mappings()[block] = {memory, size};
  return block;
}
void release_guarded(void* block, void*) {
  if (block == nullptr) return;
  const auto found = mappings().find(block);
  MW_CHECK(found != mappings().end());
  ::munmap(found->second.begin, found->second.size + page_size());
  mappings().erase(found);
}

const DeviceTable& guarded_device() {
  static const DeviceTable device = [] {
    DeviceTable t = host_device();
    t.allocate = allocate_guarded;
    t.release = release_guarded;
    t.copy = [](void* to, const void* from, Bytes bytes, void* stream) {
      const emulated::DeviceAtWork at_work;
      host_device().copy(to, from, bytes, stream);
    };
    t.fill = [](void* to, int byte, Bytes bytes, void* stream) {
      const emulated::DeviceAtWork at_work;
      host_device().fill(to, byte, bytes, stream);
    };
    return t;
  }();
  return device;
}

template <bool kDescending, auto kKernel, class Arguments>
void run_emulated(const Launch&, const Arguments& arguments) {
  static const KernelTable queued = queued_kernels(Backend::kCuda);
  thread_local DeviceQueue queue(emulated_table(), guarded_device(), QueueTiming::kEachKernel,
                                 ScratchContents::kNan);
  emulated::set_descending_order(kDescending);
  emulated::set_on_work(set_access);
  (queued.*kKernel)({.stream = &queue}, arguments);
  emulated::set_on_work(nullptr);
}

template <bool kDescending>
KernelTable guarded_table() {
  return make_table(Backend::kCuda, []<class Row>(Row) {
    using Arguments = typename Row::Arguments;
    return KernelEntry<Arguments>{run_emulated<kDescending, Row::entry, Arguments>, nullptr};
  });
}

}  // namespace

KernelTable emulated_kernels(bool descending_order) {
  return descending_order ? guarded_table<true>() : guarded_table<false>();
}

}  // namespace meshwright
