// The table of the CUDA kernels; part of the plug-in.
#include "kernels/cuda/kernels.hpp"
#include "kernels/for_each_kernel.hpp"

namespace meshwright::cuda {

KernelTable table() {
  return make_table(Backend::kCuda, []<class Row>(Row) {
    using Entry = KernelEntry<typename Row::Arguments>;
    if constexpr (requires(const typename Row::Arguments& a) { scratch(a); })
      return Entry{run, scratch};
    else
      return Entry{run, nullptr};
  });
}

}  // namespace meshwright::cuda
