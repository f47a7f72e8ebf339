// Kernels, collectives and memory of every layer class, and of the output layer if it is sharded
// over the pipeline ranks.
#include "core/lowering/passes.hpp"

namespace meshwright {
namespace {

/// GPUs of compute capability 10.0 read fp8 operands in either layout.
ShardShape quantized_shard(const LoweringContext& context) {
  constexpr int kAnyLayout = 100;
  ShardShape shard = shard_shape_of(context.strategy);
  shard.reads_any_layout = context.device().compute_capability.value_or(0) >= kAnyLayout;
  return shard;
}

}  // namespace

void describe_layers(LoweringContext& context) {
  ShardShape shard = quantized_shard(context);
  std::vector<WorkPart>& parts = context.graph().parts;
  parts.reserve(16);
  const LayerClassesCall call{context.model, context.strategy, shard, context.groups,
                              context.options.memory};
  context.classes = lower_layer_classes(call, parts);
  if (!is_quantized(shard.dtype)) return;
  context.quantized_copies = quantized_copies(shard);
  shard.dtype = storage_dtype(shard.dtype);
  if (context.strategy.precision.wide_blocks > 0)
    context.wide_classes = lower_layer_classes(call, parts);
}

/// The table and the logits move from the first and the last part to all of them.
void shard_output_layer(LoweringContext& context) {
  const Strategy& strategy = context.strategy;
  if (output_barriers_of(strategy) == 0) return;
  const ModelGraph& model = context.model;
  const ShardShape shard = shard_shape_of(vocabulary_strategy(strategy));
  context.vocabulary =
      append_vocabulary_parts(model, strategy, context.groups, context.graph().parts);
  context.output = output_layer_bytes(model, strategy);
  for (LayerHoldings& held : context.classes) {
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
