/// Activations that a layer saves for its backward pass, and other memory of its operators, as
/// training programs hold them. Own kernels are counted buffer by buffer instead (buffers.hpp).
#pragma once

#include "core/base/units.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/shard_shape.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// Saved activations of a layer on one rank, in bytes; a tensor saved by several operators counts
/// once. Korthikanti et al. (arXiv 2205.05198), eq. 1-4: a GPT layer with standard attention saves
/// T B H (34 + 5 A T / H) bytes unsharded, T B H (10 + 24/t + 5 A T / (H t)) with tensor-parallel
/// size t, T B H / t (34 + 5 A T / H) with sequence parallelism; the tests cover all of them. Fused
/// attention saves the softmax row sums (fp32, one per head and token) instead of scores, so
/// selective recomputation makes no difference. A fully recomputed block saves only its input;
/// kBlocks is treated as kNone, as only the caller knows the block's index. Excludes logits. Each
/// quantized GEMM saves its own copy of its input; other operators save theirs in 16 bits. Some
/// trainers do not save what experts return: TrainerMemory::weighs_expert_activations.
Bytes kept_activation_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                            const Recompute& recompute, const TrainerMemory& memory = {});
/// False for operators whose backward pass needs no saved tensors under this trainer.
bool saves_tensors_of(const Operator& op, const TrainerMemory& memory);

/// Memory that the layer's weight gradients still need after its input gradients: the inputs of the
/// GEMMs and the gradients of their outputs. A GPT layer: T B H (14 + 18) bytes (Zero Bubble,
/// arXiv 2401.10241, table 1). Excludes the gradient of the logits.
struct WeightGradientNeeds {
  Bytes inputs, output_gradients;
  friend bool operator==(const WeightGradientNeeds&, const WeightGradientNeeds&) = default;
};
WeightGradientNeeds weight_gradient_needs(const ModelGraph& model, LayerId layer,
                                          const ShardShape& shard);

/// Number of logits per token on one rank: its shard of the padded vocabulary, or all of it if the
/// head is not sharded.
std::int64_t local_words(const ModelGraph& model, const Operator& loss, const ShardShape& shard);

/// Logits on one rank (fp32, for the loss) and their gradient (stored type). Zero for layers
/// without a loss.
struct LogitBytes {
  Bytes values, gradient;
  bool sharded = false;  ///< over tensor ranks
  friend bool operator==(const LogitBytes&, const LogitBytes&) = default;
};
LogitBytes logit_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// The input of the head before the product with its weights, for all tokens of the tensor group.
Bytes gathered_head_input(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// The largest tensor that a task of the layer uses, gathered if necessary; excludes logits.
Bytes largest_activation(const ModelGraph& model, LayerId layer, const ShardShape& shard);

}  // namespace meshwright
