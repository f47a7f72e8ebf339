// The kernel table of one instruction-set level (vector.hpp).
#include "kernels/cpu/kernels.hpp"
#include "kernels/for_each_kernel.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {

KernelTable table() {
  return make_table(Backend::kCpu, []<class Row>(Row) {
    using Entry = KernelEntry<typename Row::Arguments>;
    if constexpr (Row::cpu == KernelCode::kReference)  // a few numbers in double
      return Entry{reference::run, nullptr};
    else if constexpr (Row::cpu == KernelCode::kScratch)
      return Entry{run, scratch};
    else
      return Entry{run, nullptr};
  });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
