/// What one operator asks of one rank: arithmetic, memory traffic, kept activations. Facts of the
/// operator and of how it is cut; no cost and no device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/kernel.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "core/units.hpp"

namespace meshwright {

/// The part of a strategy that shapes local work.
struct ShardShape {
  std::int64_t sequences = 1;        ///< B: micro-batch
  std::int64_t sequence_length = 1;  ///< T: whole sequence, before context parallelism cuts it
  ParallelDegrees degrees;
  bool sequence_parallel = false;
  Dtype dtype = Dtype::kBf16;
  AttentionAlgorithm attention = AttentionAlgorithm::kFlash;
  ContextAlgorithm context = ContextAlgorithm::kAllGather;
  ExpertRouting routing = {};
  friend bool operator==(const ShardShape&, const ShardShape&) = default;
};
ShardShape shard_shape_of(const Strategy& strategy);

/// Local sizes that follow from a ShardShape. Divisions round up, so that a count never becomes
/// smaller than what the largest rank has.
struct LocalTokens {
  std::int64_t sequence = 0;    ///< T / context
  std::int64_t gathered = 0;    ///< B T / context: rows of a matrix multiplication
  std::int64_t cut = 0;         ///< rows of kTokens tensors: / tensor under sequence parallelism
  std::int64_t dispatched = 0;  ///< B T / (context tensor): tokens that a rank sends to experts
  friend bool operator==(const LocalTokens&, const LocalTokens&) = default;
};
LocalTokens local_tokens(const ShardShape& shard);

/// Rows of K of E experts per token. What one rank of n tokens sends: n K; what the busiest expert
/// rank gets on behalf of one such rank: n K times the imbalance. With capacity c both are
/// E ceil(c n K / E). See ExpertRouting.
struct RoutedTokens {
  int experts_per_token = 1, experts = 1;
};
std::int64_t routed_rows(const ShardShape& shard, const RoutedTokens& routed, bool busiest);

/// Columns of an activation on one of `tensor` ranks. Heads stay whole: with more ranks than heads,
/// several ranks hold copies of one.
std::int64_t local_width(const ActivationTensor& activation, int tensor);
/// Columns that one rank makes of a column-cut product without vocabulary padding.
std::int64_t local_columns(const ModelGraph& model, const Operator& op, int tensor);

/// Bytes of a stored activation or weight. fp8 training stores bf16 and converts in front of each
/// matrix multiplication (Micikevicius et al., arXiv 2209.05433; Transformer Engine does so).
Bytes stored_element(Dtype dtype);

/// Rows of a vocabulary table or head: padded to a multiple of 128 x tensor, as Megatron-LM does
/// (--make-vocab-size-divisible-by 128), so that every tensor rank has an equal, aligned part.
std::int64_t padded_vocabulary(std::int64_t rows, int tensor);

/// Forward FLOPs of the uncut operator on B sequences of length T; a multiply-add is two. Attention
/// counts every score (full, not causal-halved), windows are honoured.
Flops forward_flops(const Operator& op, std::int64_t sequences, std::int64_t sequence_length);

/// Kernels that one rank launches for the operator in one phase, in order; cut as `shard` says.
/// Operators without weights have their whole backward in kBackwardInput, and so have norms (one
/// kernel makes both gradients). kUpdate has none: lower() updates all parameters of a rank at
/// once.
///
/// Weight gradients are accumulated in fp32 (read and written). Fused attention needs 2 products
/// forward and 5 backward (arXiv 2205.14135, algorithm 4); standard attention 2 and 4, plus a
/// softmax on every score, causal or not.
std::vector<Kernel> kernels_of(const ModelGraph& model, OperatorId op, const ShardShape& shard,
                               Phase phase);

/// The same, appended to `kernels`.
void append_kernels(const ModelGraph& model, OperatorId op, const ShardShape& shard, Phase phase,
                    std::vector<Kernel>& kernels);

/// Local bytes of an activation tensor.
Bytes activation_bytes(const ActivationTensor& tensor, const ShardShape& shard);

/// Bytes that one rank keeps from a layer's forward to its backward: every kept tensor once.
/// Korthikanti et al. (arXiv 2205.05198), eq. 1-4: a GPT layer with standard attention keeps
/// T B H (34 + 5 A T / H) bytes uncut, T B H (10 + 24/t + 5 A T / (H t)) under tensor parallelism
/// t, T B H / t (34 + 5 A T / H) with sequence parallelism; tests repeat all of them.
/// Fused attention keeps no scores but the softmax's row sums (fp32, one per head and token), so
/// selective recomputation changes nothing there. A fully recomputed block keeps its input only;
/// kBlocks is judged by the caller, who knows which block it is (as kNone here). Logits are apart.
Bytes kept_activation_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                            const Recompute& recompute);

/// What the layer's weight gradients still need once its input gradients are done: inputs of the
/// matrix multiplications, and gradients of their outputs. A GPT layer: T B H (14 + 18) bytes
/// (Zero Bubble, arXiv 2401.10241, table 1). The gradient of the logits is apart.
struct WeightGradientNeeds {
  Bytes inputs, output_gradients;
  friend bool operator==(const WeightGradientNeeds&, const WeightGradientNeeds&) = default;
};
WeightGradientNeeds weight_gradient_needs(const ModelGraph& model, LayerId layer,
                                          const ShardShape& shard);

/// Words whose logits one rank has: its part of the padded vocabulary, all if the head is not cut.
std::int64_t local_words(const ModelGraph& model, const Operator& loss, const ShardShape& shard);

/// Output of the vocabulary projection on one rank: fp32 for the loss, and its gradient in the
/// stored type. Zero for layers without a loss.
struct LogitBytes {
  Bytes values, gradient;
  friend bool operator==(const LogitBytes&, const LogitBytes&) = default;
};
LogitBytes logit_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// The largest tensor that a task of the layer has at hand, gathered if it is; logits are apart.
Bytes largest_activation(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// Parameters of a layer that one rank holds.
struct LocalParameters {
  std::int64_t dense = 0;   ///< replicated over data ranks (and context ranks)
  std::int64_t expert = 0;  ///< replicated over the ranks that hold the same experts
  friend bool operator==(const LocalParameters&, const LocalParameters&) = default;
};
constexpr LocalParameters& operator+=(LocalParameters& a, const LocalParameters& b) {
  a.dense += b.dense;
  a.expert += b.expert;
  return a;
}
LocalParameters local_parameters(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// The same, parameter by parameter, in the order of the layer's operators.
struct LocalParameter {
  std::int64_t count = 0;
  bool expert = false;
  friend bool operator==(const LocalParameter&, const LocalParameter&) = default;
};
std::vector<LocalParameter> local_parameter_list(const ModelGraph& model, LayerId layer,
                                                 const ShardShape& shard);
/// Of a layer's parameters on one rank: those whose gradients the tensor ranks must add up, because
/// each has seen a part only. Whole ones that work on cut tokens (sequence parallelism: norms,
/// biases behind row cuts, routers) or on cut heads (norms of queries and keys) over all tensor
/// ranks; copies of key and value heads over the ranks that hold the copies.
struct PartialGradients {
  std::int64_t over_tensor = 0, over_copies = 0;
  friend bool operator==(const PartialGradients&, const PartialGradients&) = default;
};
constexpr PartialGradients& operator+=(PartialGradients& a, const PartialGradients& b) {
  a.over_tensor += b.over_tensor;
  a.over_copies += b.over_copies;
  return a;
}
PartialGradients partial_gradients(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// What attention holds beside its tensors while context ranks exchange; see ContextAlgorithm.
/// Backward: keys and values and as much of their gradients; all-to-all as forward.
struct ContextBuffers {
  Bytes forward, backward;
  friend bool operator==(const ContextBuffers&, const ContextBuffers&) = default;
};
ContextBuffers context_buffers(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// Queries, keys with values, and outputs of one rank before any exchange.
struct AttentionBytes {
  Bytes queries, key_values, outputs;
};
AttentionBytes attention_bytes(const Attention& attention, const ShardShape& shard);

/// Of the table that a tied head shares with the embedding: what the head's device holds as a copy
/// when the embedding is elsewhere. Zero for untied models.
std::int64_t local_tied_parameters(const ModelGraph& model, const ShardShape& shard);

}  // namespace meshwright
