// Which layers each pipeline rank holds, and what it sends to its neighbors.

#include <algorithm>

#include "core/lowering/passes.hpp"
#include "core/lowering/works.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

/// The index of the variant of a block, which is appended if it is new. Resharding is not part of
/// it: passes are the same with and without.
std::int32_t variant_of_block(LoweringContext& context, int block, bool is_wide) {
  std::vector<LayerVariant>& variants = context.variants;
  const LayerOptions& options = context.strategy.layer_options;
  const Recompute* own = value_of_block(options.recompute, block);
  const Recompute& recompute = own != nullptr ? *own : context.strategy.recompute;
  const bool shares = shares_tokens(context.strategy, block);
  const auto found = std::ranges::find_if(variants, [&](const LayerVariant& variant) {
    return variant.strategy.recompute == recompute && variant.is_wide == is_wide &&
           variant.shares_tokens == shares;
  });
  if (found != variants.end()) return static_cast<std::int32_t>(found - variants.begin());
  variants.push_back({.strategy = strategy_of_block(context.strategy, block),
                      .is_wide = is_wide,
                      .shares_tokens = shares});
  return static_cast<std::int32_t>(variants.size() - 1);
}

/// Blocks without options of their own count for RecomputeKind::kBlocks, too: it is the place in
/// the stage that matters.
std::vector<PlacedLayer> place_layers(LoweringContext& context, std::span<const LayerId> layers,
                                      int part) {
  const Strategy& strategy = context.strategy;
  int recomputed = recomputed_blocks(strategy.recompute, part);
  std::vector<PlacedLayer> placed;
  placed.reserve(layers.size());
  for (const LayerId id : layers) {
    const Layer& layer = context.model.layers[id.index()];
    PlacedLayer& made = placed.emplace_back();
    made.layer = id;
    made.layer_class = layer.layer_class;
    made.reshards_after_forward = strategy.data_parallelism.reshard_after_forward;
    if (layer.kind != LayerKind::kBlock) continue;
    made.fully_recomputed = recomputed-- > 0;
    const int block = block_index(context.model, id);
    const Recompute* recompute = value_of_block(strategy.layer_options.recompute, block);
    if (recompute != nullptr) made.fully_recomputed = recompute->kind == RecomputeKind::kFull;
    if (const bool* reshard = value_of_block(strategy.layer_options.reshard_after_forward, block))
      made.reshards_after_forward = *reshard;
    made.variant = variant_of_block(context, block, is_wide_block(context.model, id, strategy));
  }
  return placed;
}

}  // namespace

bool is_wide_block(const ModelGraph& model, LayerId layer, const Strategy& strategy) {
  const int wide = strategy.precision.wide_blocks;
  if (wide == 0 || !is_quantized(strategy.dtype)) return false;
  if (model.layers[layer.index()].kind != LayerKind::kBlock) return false;
  const int block = block_index(model, layer);
  return block < wide || block >= block_count(model) - wide;
}

namespace {

Bytes output_bytes(const Strategy& strategy, const ModelGraph& model, LayerId layer) {
  const ShardShape shard = shard_shape_of(strategy);
  return stored_element(shard.dtype) *
         (local_tokens(shard).cut * model.layers[layer.index()].output_width);
}

/// Of a message; each tensor rank sends one.
int slices_of_message(const Strategy& strategy, const TrainerMemory& memory) {
  return memory.sends_slices && !strategy.sequence_parallel ? strategy.degrees.tensor : 1;
}

}  // namespace

Bytes output_bytes(const LoweringContext& context, LayerId layer) {
  return output_bytes(context.strategy, context.model, layer);
}

Bytes message_bytes(const Strategy& strategy, const ModelGraph& model, LayerId last,
                    const TrainerMemory& memory) {
  return Bytes(
      divide_up(output_bytes(strategy, model, last).value, slices_of_message(strategy, memory)));
}

void cut_stages(LoweringContext& context) {
  context.message_slices = slices_of_message(context.strategy, context.options.memory);
  context.placement = placement_of(context.plan);
  context.groups = job_groups_of(context.strategy, context.cluster);
  context.variants.push_back({.strategy = context.strategy});
  for (const std::vector<LayerId>& layers : layers_of_parts(context.plan, context.model)) {
    const auto part = static_cast<int>(context.layers.size());
    context.layers.push_back(place_layers(context, layers, part));
    context.boundary.push_back(output_bytes(context, layers.back()));
  }
}

}  // namespace meshwright
