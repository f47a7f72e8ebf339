// Which layers each pipeline rank holds, and what it sends to its neighbors.

#include "core/lowering/passes.hpp"
#include "core/lowering/works.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

std::vector<PlacedLayer> place_layers(const LoweringContext& context,
                                      std::span<const LayerId> layers, int part) {
  int recomputed = recomputed_blocks(context.strategy.recompute, part);
  std::vector<PlacedLayer> placed;
  placed.reserve(layers.size());
  for (const LayerId id : layers) {
    const Layer& layer = context.model.layers[id.index()];
    placed.push_back({.layer = id,
                      .layer_class = layer.layer_class,
                      .fully_recomputed = layer.kind == LayerKind::kBlock && recomputed-- > 0,
                      .is_wide = is_wide_block(context.model, id, context.strategy)});
  }
  return placed;
}

}  // namespace

bool is_wide_block(const ModelGraph& model, LayerId layer, const Strategy& strategy) {
  const int wide = strategy.precision.wide_blocks;
  if (wide == 0 || !is_quantized(strategy.dtype)) return false;
  if (model.layers[layer.index()].kind != LayerKind::kBlock) return false;
  const int first_block = model.layers.front().kind == LayerKind::kBlock ? 0 : 1;
  const int block = layer.value - first_block;
  return block < wide || block >= block_count(model) - wide;
}

Bytes output_bytes(const LoweringContext& context, LayerId layer) {
  const ShardShape shard = shard_shape_of(context.strategy);
  const std::int64_t width = context.model.layers[layer.index()].output_width;
  return stored_element(shard.dtype) * (local_tokens(shard).cut * width);
}

void cut_stages(LoweringContext& context) {
  if (context.options.memory.sends_slices && !context.strategy.sequence_parallel)
    context.message_slices = context.strategy.degrees.tensor;
  context.placement = placement_of(context.plan);
  context.groups = job_groups_of(context.strategy, context.cluster);
  for (const std::vector<LayerId>& layers : layers_of_parts(context.plan, context.model)) {
    const auto part = static_cast<int>(context.layers.size());
    context.layers.push_back(place_layers(context, layers, part));
    context.boundary.push_back(output_bytes(context, layers.back()));
  }
}

}  // namespace meshwright
