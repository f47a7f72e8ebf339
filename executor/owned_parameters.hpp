/// The elements of whole parameters that one rank keeps the state of.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "executor/stage_parameters.hpp"

namespace meshwright {

enum class StateKind : std::uint8_t { kWeights, kFirstMoment, kSecondMoment };
inline constexpr int kStateKindCount = 3;

/// Own elements of the run side by side, in fp32: weights as precisely as they are kept.
std::vector<float> own_values(ParameterRun& run, StateKind kind, Beats& beats);
/// The inverse; weights are rounded where they are used in 16 bits.
void set_own_values(RankContext& rank, ParameterRun& run, StateKind kind,
                    std::span<const float> values);

/// Calls visit(tensor, number, place) for every own element of the dense or the expert parameters
/// that is no padding: its number in the whole parameter, its place in own_values(). By tensor,
/// then by place.
void for_each_own_element(
    const ModelGraph& model, StageParameters& parameters, bool expert,
    const std::function<void(TensorId tensor, std::int64_t number, std::size_t place)>& visit);

}  // namespace meshwright
