// Shards the output layer over the pipeline ranks.
#include "core/lowering/output_layer.hpp"
#include "core/lowering/passes.hpp"

namespace meshwright {

/// The table and the logits move from the first and the last part to all of them.
void shard_output_layer(LoweringContext& context) {
  const Strategy& strategy = context.strategy;
  if (output_barriers_of(strategy) == 0) return;
  const ModelGraph& model = context.model;
  const ShardShape shard = shard_shape_of(vocabulary_strategy(strategy));
  context.vocabulary =
      append_vocabulary_parts(model, strategy, context.groups, context.graph().parts);
  context.output = output_layer_bytes(model, strategy);
  for (LayerHoldings& held : context.variants.front().classes) {
    const LayerKind kind = model.layers[held.first.index()].kind;
    if (kind == LayerKind::kBlock) continue;
    const std::int64_t words = local_vocabulary_parameters(model, held.first, shard);
    held.parameters = local_parameters(model, held.first, shard);
    held.parameters.dense -= words;
    context.vocabulary_parameters += words;
    if (kind != LayerKind::kHead) continue;
    held.kept -= context.output.input;  // held by S and T
    held.kept_if_whole -= context.output.input;
    held.kept_if_full -= context.output.input;
    held.logits = {};
  }
}

}  // namespace meshwright
