// Backward passes that first repeat forward work of the same layer.
#include <algorithm>

#include "core/lowering/passes.hpp"
#include "core/lowering/works.hpp"

namespace meshwright {
namespace {

/// Puts the recomputation of each layer before its backward part, the first of which belongs to the
/// last layer.
void insert_recomputation(const LoweringContext& context, std::span<const PlacedLayer> layers,
                          Work& work) {
  std::vector<std::int32_t> parts;
  for (const WorkPartUse& use : work.parts)
    parts.insert(parts.end(), static_cast<std::size_t>(use.count), use.part);
  work.parts.clear();
  auto part = parts.begin();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
    if (recomputes(context, *layer)) use_part(work, context.held(*layer).parts.recompute);
    use_part(work, *part++);
  }
  for (; part != parts.end(); ++part) use_part(work, *part);
}

}  // namespace

bool recomputes(const LoweringContext& context, const PlacedLayer& layer) {
  return context.held(layer).parts.recompute >= 0 &&
         (layer.fully_recomputed ||
          recomputes_operators(context.variant_of(layer).strategy.recompute.kind));
}

void add_recomputation(LoweringContext& context) {
  for (const LayerSlice& slice : context.slices) {
    const std::span<const PlacedLayer> layers = layers_of(context, slice);
    if (std::none_of(layers.begin(), layers.end(),
                     [&](const PlacedLayer& layer) { return recomputes(context, layer); }))
      continue;
    for (const WorkId work : {slice.works.backward, slice.works.backward_input})
      insert_recomputation(context, layers, context.graph().works[work.index()]);
  }
}

}  // namespace meshwright
