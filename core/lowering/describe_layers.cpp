// Kernels, collectives and memory of every layer class.
#include <utility>

#include "core/lowering/passes.hpp"

namespace meshwright {
namespace {

/// GPUs of compute capability 10.0 read fp8 operands in either layout.
constexpr int kAnyLayout = 100;

}  // namespace

void shard_layers(const LoweringContext& context, LayerVariant& variant) {
  variant.shard = shard_shape_of(variant.strategy);
  variant.shard.reads_any_layout = context.device().compute_capability.value_or(0) >= kAnyLayout;
  if (variant.is_wide) variant.shard.dtype = storage_dtype(variant.shard.dtype);
  if (!variant.shares_tokens) return;
  variant.groups = context.groups;
  variant.groups.context = std::exchange(variant.groups.tensor, {});
}

void describe_layers(LoweringContext& context) {
  std::vector<WorkPart>& parts = context.graph().parts;
  parts.reserve(16);
  for (LayerVariant& variant : context.variants) {
    shard_layers(context, variant);
    const bool only_blocks = &variant != &context.variants.front();
    variant.classes = lower_layer_classes(context.call(variant), only_blocks, parts);
  }
  const ShardShape& shard = context.variants.front().shard;
  if (is_quantized(shard.dtype)) context.quantized_copies = quantized_copies(shard);
}

}  // namespace meshwright
