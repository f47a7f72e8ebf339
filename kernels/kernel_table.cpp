#include "kernels/kernel_table.hpp"

#include "core/check.hpp"
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

const KernelTable& kernel_table(Backend backend) {
  MW_CHECK(backend == Backend::kReference);
  static const KernelTable reference = reference_table();
  return reference;
}

}  // namespace meshwright
