// Passes over stages and units step by step, with the buffers that they acquire and release.
#include "core/lowering/passes.hpp"
#include "core/lowering/work_programs.hpp"
#include "core/lowering/works.hpp"

namespace meshwright {

namespace {

std::vector<SavedTensors> saved_by_part(const LoweringContext& context) {
  std::vector<SavedTensors> saved;
  for (const std::vector<PlacedLayer>& placed : context.layers) {
    std::vector<SavedLayer> layers;
    layers.reserve(placed.size());
    for (const PlacedLayer& layer : placed)
      layers.push_back(
          {.layer = layer.layer,
           .is_recomputed = layer.fully_recomputed,
           .repeats_attention = repeats_attention(context.variant_of(layer).strategy)});
    saved.emplace_back(context.model, layers);
  }
  return saved;
}

}  // namespace

void describe_programs(LoweringContext& context) {
  const bool counts_buffers = context.device().kernels == KernelLibrary::kOwn;
  const bool is_requested = context.options.programs && !is_quantized(context.strategy.dtype);
  if (!counts_buffers && !is_requested) return;
  const std::vector<SavedTensors> saved = saved_by_part(context);
  for (const LayerSlice& slice : context.slices) {
    SliceLayers described{.layers = {},
                          .saved = &saved[static_cast<std::size_t>(slice.part)],
                          .previous_is_here = slice.previous_is_here,
                          .next_is_here = slice.next_is_here,
                          .is_first = slice.is_first,
                          .is_last = slice.is_last};
    for (const PlacedLayer& layer : layers_of(context, slice))
      described.layers.push_back({layer.layer, context.held(layer).parts,
                                  context.call(context.variant_of(layer)),
                                  recomputes(context, layer)});
    if (described.layers.empty()) continue;
    SlicePasses passes = slice_passes(context.model, described);
    const auto note = [&](WorkId id, SlicePass& pass) {
      Work& work = context.graph().works[id.index()];
      work.program = static_cast<std::int32_t>(context.graph().programs.size());
      context.graph().programs.push_back(std::move(pass.program));
      if (!counts_buffers) return;
      work.acquired = pass.memory.acquired;
      work.released = pass.memory.released;
      work.transient = pass.memory.transient;
    };
    note(slice.works.forward, passes.forward);
    note(slice.works.backward, passes.backward);
    note(slice.works.backward_input, passes.backward_input);
    note(slice.works.backward_weight, passes.backward_weight);
    if (counts_buffers && !slice.is_unit)
      context.memory.push_back({passes.forward.memory, passes.backward.memory,
                                passes.backward_input.memory, passes.backward_weight.memory});
  }
}

}  // namespace meshwright
