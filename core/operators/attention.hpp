/// Sizes of attention under context parallelism.
#pragma once

#include "core/operators/shard_shape.hpp"

namespace meshwright {

/// Size of the queries, keys and values, and outputs of one rank before any communication.
struct AttentionBytes {
  Bytes queries, key_values, outputs;
};
AttentionBytes attention_bytes(const Attention& attention, const ShardShape& shard);

/// Log-sum-exp that fused attention saves: fp32, one per row and head of this rank.
Bytes softmax_statistics(const Attention& attention, const ShardShape& shard);

/// Extra memory of attention during context-parallel communication; see ContextAlgorithm. Backward:
/// keys and values, and the same amount for their gradients; all-to-all: as in the forward pass.
struct ContextBuffers {
  Bytes forward, backward;
  friend bool operator==(const ContextBuffers&, const ContextBuffers&) = default;
};
ContextBuffers context_buffers(const ModelGraph& model, LayerId layer, const ShardShape& shard);

}  // namespace meshwright
