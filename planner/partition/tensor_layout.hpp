/// Layouts of tensors over tensor-parallel devices, and the collectives that change them.
///
/// As in PyTorch's DTensor, a tensor is on every device (Replicate), or each has a part of one
/// dimension (Shard), or the sum over the devices is the tensor (Partial). Collectives change them,
/// and in the backward pass those of its gradient:
///
///   from       to                    forward          backward
///   Replicate  Shard                 -                all-gather
///   Shard      Replicate             all-gather       -
///   Shard      another Shard         all-to-all       all-to-all
///   Partial    Replicate             all-reduce       -
///   Partial    Shard                 reduce-scatter   all-gather
///
/// A unit that computes a part of what it reads whole has a Partial gradient of it: then Replicate
/// costs an all-reduce, and Shard a reduce-scatter, in the backward pass. A column- and a row-
/// parallel product between norms on parts of the rows are so the sequence parallelism of
/// Megatron-LM (arXiv 2205.05198).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/kernel_graph.hpp"

namespace meshwright {

struct TensorGroup {
  int devices = 1;
  int groups_per_node = 1;  ///< each within a node
};

enum class LayoutKind : std::uint8_t {
  kReplicate,
  kReplicateWithPartialGradient,  ///< of what a unit reads
  kShard,
  kPartial
};
struct TensorLayout {
  LayoutKind kind = LayoutKind::kReplicate;
  std::int32_t dim = 0;     ///< of kShard
  std::int64_t stride = 0;  ///< see ShardedTensor
  friend auto operator<=>(const TensorLayout&, const TensorLayout&) = default;
};
/// In DTensor's words: "Shard(1)".
std::string to_text(const TensorLayout& layout);

/// Of a tensor that a unit writes or reads; null: all devices do the same.
TensorLayout output_layout(const KernelSharding* sharding, std::int32_t tensor);
TensorLayout input_layout(const KernelSharding* sharding, std::int32_t tensor);

struct LayoutChange {
  std::vector<Collective> forward, backward;
};

/// A tensor between two layouts.
struct LayoutPair {
  TensorLayout from, to;
  Bytes bytes;  ///< of the whole tensor
  bool has_gradient = true;
  /// The reader is a product of it and weights, and so reads it again for their gradients.
  bool has_weight_gradient = false;
  /// As in Megatron-LM, collectives of that backward pass run beside the product that does not need
  /// their result: Overlap::kernels -1 is the gradient of the input, 1 that of the weights.
  bool overlaps = false;
};
LayoutChange change_layout(const LayoutPair& pair, const TensorGroup& group);

/// Along the tensor axis, within a node.
Collective tensor_collective(CollectiveKind kind, Bytes bytes, const TensorGroup& group);

}  // namespace meshwright
