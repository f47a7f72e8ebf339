/// The works of passes over consecutive layers.
#pragma once

#include <cstdint>
#include <span>

#include "core/lowering/lowering_context.hpp"

namespace meshwright {

std::span<const PlacedLayer> layers_of(const LoweringContext& context, const LayerSlice& slice);
/// Appends a part to the parts of a work; the same part again counts as a repetition.
void use_part(Work& work, std::int32_t part);
/// True if the backward passes repeat forward work of the layer.
bool recomputes(const LoweringContext& context, const PlacedLayer& layer);
/// The output of a layer on one rank.
Bytes output_bytes(const LoweringContext& context, LayerId layer);

}  // namespace meshwright
