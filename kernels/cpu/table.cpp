// The kernel table of one instruction-set level (vector.hpp).
#include <concepts>

#include "kernels/cpu/kernels.hpp"
#include "kernels/for_each_kernel.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// A few numbers in double: there is nothing to vectorize.
template <class Arguments>
constexpr bool kUsesReference =
    std::same_as<Arguments, RotaryTable> || std::same_as<Arguments, CrossEntropyLoss> ||
    std::same_as<Arguments, GateAuxiliaryLoss> || std::same_as<Arguments, ClipScale>;

}  // namespace

KernelTable table() {
  return make_table(Backend::kCpu, []<class Row>(Row) {
    using Arguments = typename Row::Arguments;
    using Entry = KernelEntry<Arguments>;
    if constexpr (kUsesReference<Arguments>)
      return Entry{reference::run, nullptr};
    else if constexpr (requires(const Arguments& a) { scratch(a); })
      return Entry{run, scratch};
    else
      return Entry{run, nullptr};
  });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
