#include "planner/partition/tensor_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace meshwright {
namespace {

std::optional<TensorLayout> shard_of(const KernelSharding& sharding, std::int32_t tensor) {
  const auto found = std::ranges::lower_bound(sharding.tensors, tensor, {}, &ShardedTensor::tensor);
  if (found == sharding.tensors.end() || found->tensor != tensor) return std::nullopt;
  return TensorLayout{LayoutKind::kShard, found->dim, found->stride};
}

/// A dimension that is divided in any order can have that of its reader or writer: weights are laid
/// out accordingly.
bool are_same_parts(const TensorLayout& a, const TensorLayout& b) {
  return a.dim == b.dim && (a.stride == b.stride || a.stride == 0 || b.stride == 0);
}

}  // namespace

std::string to_text(const TensorLayout& layout) {
  switch (layout.kind) {
    case LayoutKind::kShard:
      return fmt::format("Shard({})", layout.dim);
    case LayoutKind::kPartial:
      return "Partial";
    default:
      return "Replicate";
  }
}

TensorLayout output_layout(const KernelSharding* sharding, std::int32_t tensor) {
  if (sharding == nullptr) return {};
  if (const auto shard = shard_of(*sharding, tensor)) return *shard;
  return {.kind = sharding->gives_sums ? LayoutKind::kPartial : LayoutKind::kReplicate};
}

/// What is added to sums is read whole, and so is its gradient.
TensorLayout input_layout(const KernelSharding* sharding, std::int32_t tensor) {
  if (sharding == nullptr) return {};
  if (const auto shard = shard_of(*sharding, tensor)) return *shard;
  if (sharding->gives_sums) return {};
  return {.kind = LayoutKind::kReplicateWithPartialGradient};
}

Collective tensor_collective(CollectiveKind kind, Bytes bytes, const TensorGroup& group) {
  Collective made;
  made.kind = kind;
  made.axis = Axis::kTensor;
  made.bytes = bytes;
  made.group = {.ranks = group.devices, .nodes = 1, .groups_per_node = group.groups_per_node};
  return made;
}

LayoutChange change_layout(const LayoutPair& pair, const TensorGroup& group) {
  constexpr int kPreviousKernel = -1, kNextKernel = 1;
  LayoutChange change;
  const auto forward = [&](CollectiveKind kind, Bytes bytes) {
    change.forward.push_back(tensor_collective(kind, bytes, group));
  };
  const auto backward = [&](CollectiveKind kind, Bytes bytes, int kernels = 0) {
    if (!pair.has_gradient) return;
    change.backward.push_back(tensor_collective(kind, bytes, group));
    if (pair.overlaps && pair.has_weight_gradient) change.backward.back().overlap.kernels = kernels;
  };
  const Bytes bytes = pair.bytes;
  const bool is_shard = pair.to.kind == LayoutKind::kShard;
  const bool has_partial_gradient = pair.to.kind == LayoutKind::kReplicateWithPartialGradient;
  switch (pair.from.kind) {
    case LayoutKind::kReplicate:
    case LayoutKind::kReplicateWithPartialGradient:
      if (is_shard) backward(CollectiveKind::kAllGather, bytes);
      if (has_partial_gradient) backward(CollectiveKind::kAllReduce, bytes, kNextKernel);
      break;
    case LayoutKind::kShard:
      if (is_shard) {
        if (are_same_parts(pair.from, pair.to)) break;
        const Bytes part(divide_up(bytes.value, std::int64_t{group.devices}));
        forward(CollectiveKind::kAllToAll, part);
        backward(CollectiveKind::kAllToAll, part);
        break;
      }
      forward(CollectiveKind::kAllGather, bytes);
      if (!has_partial_gradient) break;
      if (pair.has_weight_gradient) backward(CollectiveKind::kAllGather, bytes, kPreviousKernel);
      backward(CollectiveKind::kReduceScatter, bytes, kNextKernel);
      break;
    case LayoutKind::kPartial:
      if (is_shard) {
        forward(CollectiveKind::kReduceScatter, bytes);
        backward(CollectiveKind::kAllGather, bytes);
        break;
      }
      forward(CollectiveKind::kAllReduce, bytes);
      if (has_partial_gradient) backward(CollectiveKind::kAllReduce, bytes, kNextKernel);
      break;
  }
  return change;
}

}  // namespace meshwright
