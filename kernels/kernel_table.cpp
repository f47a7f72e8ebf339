#include "kernels/kernel_table.hpp"

#include <fmt/format.h>

#include "core/base/check.hpp"
#include "kernels/cpu/levels.hpp"
#include "kernels/reference/table.hpp"

namespace meshwright {

const KernelTable& kernel_table(Backend backend) {
  MW_CHECK(!has_device_memory(backend));
  static const KernelTable reference = reference_table(), cpu = fastest_cpu_table();
  return backend == Backend::kReference ? reference : cpu;
}

std::string kernels_summary() {
  return fmt::format("matrix products by {}, vector code for {}, one thread", products_by(),
                     runnable_cpu_levels().back().name);
}

}  // namespace meshwright
