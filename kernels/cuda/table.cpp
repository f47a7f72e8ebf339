// The table of the CUDA kernels; part of the plug-in.
#include "kernels/cuda/kernels.hpp"
#include "kernels/for_each_kernel.hpp"

namespace meshwright::cuda {

KernelTable table() {
  return make_table(Backend::kCuda, []<class Row>(Row) {
    using Entry = KernelEntry<typename Row::Arguments>;
    static_assert(Row::cuda != KernelCode::kReference, "host code cannot read device memory");
    if constexpr (Row::cuda == KernelCode::kScratch)
      return Entry{run, scratch};
    else
      return Entry{run, nullptr};
  });
}

}  // namespace meshwright::cuda
