#include "core/base/kernel.hpp"

#include <algorithm>
#include <array>

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

template <class Value, std::size_t N>
std::optional<Value> value_named(const std::array<std::string_view, N>& names,
                                 std::string_view name) {
  for (std::size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Value>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Routine routine) {
  return kRoutineNames[static_cast<std::size_t>(routine)];
}
std::optional<Routine> routine_from_name(std::string_view name) {
  return value_named<Routine>(kRoutineNames, name);
}
std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }
std::optional<Phase> phase_from_name(std::string_view name) {
  return value_named<Phase>(kPhaseNames, name);
}

namespace {
constexpr std::array<std::string_view, kCollectiveAlgorithmCount> kAlgorithmNames{
    "auto", "ring", "tree", "nvls", "hierarchical"};
}  // namespace

std::string_view name_of(CollectiveAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::optional<CollectiveAlgorithm> collective_algorithm_from_name(std::string_view name) {
  return value_named<CollectiveAlgorithm>(kAlgorithmNames, name);
}

}  // namespace meshwright
