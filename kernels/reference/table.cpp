#include "kernels/reference/table.hpp"

#include "kernels/for_each_kernel.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright {

KernelTable reference_table() {
  return make_table(Backend::kReference, []<class Row>(Row) {
    return KernelEntry<typename Row::Arguments>{reference::run, nullptr};
  });
}

}  // namespace meshwright
