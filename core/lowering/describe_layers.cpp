// Kernels, collectives and memory of every layer class.
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

void shard_layers(LoweringContext& context) {
  context.shard = quantized_shard(context);
  context.wide_shard = context.shard;
  context.wide_shard.dtype = storage_dtype(context.shard.dtype);
}

void describe_layers(LoweringContext& context) {
  shard_layers(context);
  std::vector<WorkPart>& parts = context.graph().parts;
  parts.reserve(16);
  context.classes = lower_layer_classes(context.call(context.shard), parts);
  if (!is_quantized(context.shard.dtype)) return;
  context.quantized_copies = quantized_copies(context.shard);
  if (has_wide_layers(context))
    context.wide_classes = lower_layer_classes(context.call(context.wide_shard), parts);
}

}  // namespace meshwright
