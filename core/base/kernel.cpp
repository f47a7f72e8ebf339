#include "core/base/kernel.hpp"

#include <algorithm>
#include <array>

#include "core/base/value_named.hpp"

namespace meshwright {

std::string_view name_of(KernelKind kind) {
  constexpr std::array<std::string_view, kKernelKindCount> kNames{
      "gemm", "grouped-gemm", "attention", "memory-bound", "optimizer"};
  return kNames[static_cast<std::size_t>(kind)];
}

namespace {

constexpr std::array<std::string_view, kRoutineCount> kRoutineNames{
    "product", "attention",     "embedding", "layer-norm",   "rms-norm", "gelu",    "relu",
    "swiglu",  "residual",      "rotary",    "bias",         "softmax",  "routing", "dispatch",
    "combine", "cross-entropy", "update",    "squared-relu", "cast"};
constexpr std::array<std::string_view, kPhaseCount> kPhaseNames{"forward", "backward-input",
                                                                "backward-weight", "update"};

// A new value of an enumeration needs a name: missing initializers would be empty.
static_assert(std::ranges::none_of(kRoutineNames, &std::string_view::empty));
static_assert(std::ranges::none_of(kPhaseNames, &std::string_view::empty));

}  // namespace

std::string_view name_of(Routine routine) {
  return kRoutineNames[static_cast<std::size_t>(routine)];
}
std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

namespace {
constexpr std::array<std::string_view, kCollectiveAlgorithmCount> kAlgorithmNames{
    "auto", "ring", "tree", "nvls", "hierarchical"};
}  // namespace

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::optional<CollectiveAlgorithm> collective_algorithm_from_name(std::string_view name) {
  return value_named<CollectiveAlgorithm>(name, kCollectiveAlgorithmCount);
}

}  // namespace meshwright
