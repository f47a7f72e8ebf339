#include "kernels/kernel_table.hpp"

#include "core/check.hpp"
#include "kernels/kernel_table_cpu.hpp"
#include "kernels/kernel_table_reference.hpp"

namespace meshwright {

std::string_view name_of(Backend backend) {
  switch (backend) {
    case Backend::kReference:
      return "reference";
    case Backend::kCpu:
      return "cpu";
    case Backend::kCuda:
      return "cuda";
  }
  return "";
}

namespace {
const CpuLevel& fastest_cpu_level() {
  static const CpuLevel level = runnable_cpu_levels().back();
  return level;
}
}  // namespace

const KernelTable& kernel_table(Backend backend) {
  MW_CHECK(backend != Backend::kCuda);
  static const KernelTable reference = reference_table();
  return backend == Backend::kReference ? reference : fastest_cpu_level().table;
}

std::string kernels_summary() {
  return "own kernels, packed products, one thread; vector code: " +
         std::string(fastest_cpu_level().name);
}

}  // namespace meshwright
