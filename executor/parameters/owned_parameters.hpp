/// The parameter elements whose optimizer state a rank owns.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "executor/parameters/stage_parameters.hpp"

namespace meshwright {

enum class StateKind : std::uint8_t { kWeights, kFirstMoment, kSecondMoment };
inline constexpr int kStateKindCount = 3;

/// The owned elements of the run, contiguous, in fp32; weights in the highest precision stored.
std::vector<float> own_values(ParameterRun& run, StateKind kind, Beats& beats);
/// The inverse of own_values(); also rounds the 16-bit copies of the weights.
void set_own_values(RankContext& rank, ParameterRun& run, StateKind kind,
                    std::span<const float> values);

/// Calls visit(tensor, number, place) for every owned element of the dense or the expert parameters
/// except padding: its index in the unsharded parameter and its index in own_values(). Ordered by
/// tensor, then by place.
void for_each_own_element(
    const ModelGraph& model, StageParameters& parameters, bool expert,
    const std::function<void(TensorId tensor, std::int64_t number, std::size_t place)>& visit);

}  // namespace meshwright
