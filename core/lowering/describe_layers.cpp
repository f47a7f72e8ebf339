// Kernels, collectives and memory of every layer class, and of the output layer if it is sharded
// over the pipeline ranks.
#include "core/lowering/passes.hpp"
#include "core/lowering/works.hpp"

namespace meshwright {
namespace {

/// GPUs of compute capability 10.0 read fp8 operands in either layout.
ShardShape quantized_shard(const LoweringContext& context) {
  constexpr int kAnyLayout = 100;
  ShardShape shard = shard_shape_of(context.strategy);
  shard.reads_any_layout = context.device().compute_capability.value_or(0) >= kAnyLayout;
  return shard;
}

LayerCall call_of(const LoweringContext& context, const ShardShape& shard) {
  return {context.model, context.strategy, shard, context.groups, context.options.memory};
}

}  // namespace

void describe_layers(LoweringContext& context) {
  context.shard = quantized_shard(context);
  context.wide_shard = context.shard;
  context.wide_shard.dtype = storage_dtype(context.shard.dtype);
  std::vector<WorkPart>& parts = context.graph().parts;
  parts.reserve(16);
  context.classes = lower_layer_classes(call_of(context, context.shard), parts);
  if (!is_quantized(context.shard.dtype)) return;
  context.quantized_copies = quantized_copies(context.shard);
  if (context.strategy.precision.wide_blocks > 0)
    context.wide_classes = lower_layer_classes(call_of(context, context.wide_shard), parts);
}

void describe_programs(LoweringContext& context) {
  const bool counts_buffers = context.device().kernels == KernelLibrary::kOwn;
  const bool asks = context.options.programs && !is_quantized(context.strategy.dtype);
  if (!counts_buffers && !asks) return;
  const LayerCall call = call_of(context, context.shard);
  for (const LayerSlice& slice : context.slices) {
    SliceLayers described{.layers = {},
                          .saved = &context.saved[static_cast<std::size_t>(slice.part)],
                          .previous_is_here = slice.previous_is_here,
                          .next_is_here = slice.next_is_here,
                          .is_first = slice.is_first,
                          .is_last = slice.is_last};
    for (const PlacedLayer& layer : layers_of(context, slice))
      described.layers.push_back({layer.layer, context.held(layer).parts,
                                  layer.is_wide ? &context.wide_shard : &context.shard,
                                  recomputes(context, layer)});
    if (described.layers.empty()) continue;
    SlicePasses passes = slice_passes(call, described);
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
