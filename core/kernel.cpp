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
  constexpr std::array<std::string_view, kCollectiveKindCount> kNames{
      "all-reduce", "all-gather", "reduce-scatter", "all-to-all",    "broadcast",
      "reduce",     "scatter",    "gather",         "ring-exchange", "push",
      "pull",       "to-host",    "from-host"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {
constexpr std::array<std::string_view, kCollectiveAlgorithmCount> kAlgorithmNames{
    "auto", "ring", "tree", "nvls", "hierarchical"};
}  // namespace

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::optional<CollectiveAlgorithm> collective_algorithm_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kAlgorithmNames.size(); ++i)
    if (kAlgorithmNames[i] == name) return static_cast<CollectiveAlgorithm>(i);
  return std::nullopt;
}

}  // namespace meshwright
