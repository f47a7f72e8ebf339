/// Iteration over the contents of a checkpoint, shared by writing, reading, gathering and
/// restoring.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/model/model_graph.hpp"
#include "executor/checkpoint/checkpoint.hpp"
#include "executor/parameters/owned_parameters.hpp"

namespace meshwright {

/// Suffixes of parameter names, indexed by StateKind.
inline constexpr std::array<std::string_view, kStateKindCount> kStateSuffixes{"", ".first_moment",
                                                                              ".second_moment"};

/// `state`: a ParameterState, const or not.
template <class State>
auto& values_of(State& state, StateKind kind) {
  constexpr std::array<std::vector<float> ParameterState::*, kStateKindCount> kValues{
      &ParameterState::weights, &ParameterState::first_moment, &ParameterState::second_moment};
  return state.*kValues[static_cast<std::size_t>(kind)];
}

/// Calls visit(kind, suffix).
template <class Visit>
void for_each_state_kind(Visit visit) {
  for (int k = 0; k < kStateKindCount; ++k)
    visit(static_cast<StateKind>(k), kStateSuffixes[static_cast<std::size_t>(k)]);
}

inline std::int64_t elements_of(const ParameterTensor& parameter) {
  return std::accumulate(parameter.shape.begin(), parameter.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

/// Calls visit(tensor, parameter) in model order.
template <class Visit>
void for_each_parameter(const ModelGraph& model, Visit visit) {
  for (const Tensor& tensor : model.tensors)
    if (const auto* parameter = std::get_if<ParameterTensor>(&tensor.shape))
      visit(tensor, *parameter);
}

}  // namespace meshwright
