#include "core/kernel.hpp"

#include <array>

namespace meshwright {

std::string_view name_of(KernelKind kind) {
  constexpr std::array<std::string_view, kKernelKindCount> kNames{
      "gemm", "grouped-gemm", "attention", "memory-bound", "optimizer"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, kAxisCount> kNames{"tp", "cp", "ep", "dp", "pp"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::string_view name_of(CollectiveKind kind) {
  constexpr std::array<std::string_view, 5> kNames{"all-reduce", "all-gather", "reduce-scatter",
                                                   "all-to-all", "broadcast"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace meshwright
