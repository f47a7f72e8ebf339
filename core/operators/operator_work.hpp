/// The work of one operator on one rank: arithmetic, memory traffic, saved activations. Depends on
/// the operator and its sharding only, not on costs or devices.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// The part of a strategy that determines local shapes.
struct ShardShape {
  std::int64_t sequences = 1;        ///< B: micro-batch
  std::int64_t sequence_length = 1;  ///< T: full sequence, before context parallelism shards it
  ParallelDegrees degrees;
  bool sequence_parallel = false;
  Dtype dtype = Dtype::kBf16;
  AttentionAlgorithm attention = AttentionAlgorithm::kFlash;
  ContextAlgorithm context = ContextAlgorithm::kAllGather;
  ExpertRouting routing = {};
  Precision precision = {};
  /// Quantized GEMMs read operands in either layout; see precision.hpp.
  bool reads_any_layout = false;
  bool gathers_weights = false;  ///< ZeRO 3: weights are quantized in every pass
  friend bool operator==(const ShardShape&, const ShardShape&) = default;
};
ShardShape shard_shape_of(const Strategy& strategy);

/// Local sizes derived from a ShardShape. Divisions round up: the counts of the largest rank.
struct LocalTokens {
  std::int64_t sequence = 0;    ///< T / context
  std::int64_t gathered = 0;    ///< B T / context: rows of a GEMM
  std::int64_t cut = 0;         ///< rows of kTokens tensors: / tensor under sequence parallelism
  std::int64_t dispatched = 0;  ///< B T / (context tensor): tokens that a rank dispatches
  friend bool operator==(const LocalTokens&, const LocalTokens&) = default;
};
LocalTokens local_tokens(const ShardShape& shard);

/// Number of routed rows with K of E experts per token. One rank with n tokens sends n K rows; the
/// busiest expert rank receives n K times the imbalance per such rank. With capacity c both are
/// E ceil(c n K / E). See ExpertRouting.
struct RoutedTokens {
  int experts_per_token = 1, experts = 1;
};
std::int64_t routed_rows(const ShardShape& shard, const RoutedTokens& routed, bool busiest);

/// Columns of an activation on one of `tensor` ranks. Heads are not split: with more ranks than
/// heads, heads are replicated.
std::int64_t local_width(const ActivationTensor& activation, int tensor);
/// Output columns of a column-parallel GEMM on one rank, without vocabulary padding.
std::int64_t local_columns(const ModelGraph& model, const Operator& op, int tensor);

/// True for a GEMM in the quantized dtype of the shard: a linear layer of a block whose sizes are
/// multiples of 16, as Transformer Engine requires.
bool is_quantized(const ModelGraph& model, OperatorId op, const ShardShape& shard);
/// Number of copies of a quantized operand: along rows, and along columns if that is another one.
int quantized_copies(const ShardShape& shard);

/// Bytes of a stored activation or weight element; see storage_dtype().
Bytes stored_element(Dtype dtype);

/// Rows of a vocabulary table or head, padded to a multiple of 128 x tensor as in Megatron-LM
/// (--make-vocab-size-divisible-by 128), so that every tensor rank has an equal, aligned shard.
std::int64_t padded_vocabulary(std::int64_t rows, int tensor);

/// Forward FLOPs of the unsharded operator on B sequences of length T; a multiply-add counts as
/// two. Attention counts all scores (no causal halving) but respects windows.
Flops forward_flops(const Operator& op, std::int64_t sequences, std::int64_t sequence_length);

/// The kernels that one rank launches for the operator in one phase, in order, with local shapes.
/// Operators without weights have their full backward in kBackwardInput, and so do norms (one
/// kernel computes both gradients). kUpdate has none: lower() updates all parameters of a rank at
/// once.
///
/// Weight gradients are accumulated (read and written) in Precision::gradients. Fused attention has
/// 2 GEMMs forward and 5 backward (arXiv 2205.14135, algorithm 4); standard attention 2 and 4, plus
/// a softmax over all scores, causal or not.
std::vector<Kernel> kernels_of(const ModelGraph& model, OperatorId op, const ShardShape& shard,
                               Phase phase);

/// The same, appended to `kernels`.
void append_kernels(const ModelGraph& model, OperatorId op, const ShardShape& shard, Phase phase,
                    std::vector<Kernel>& kernels);

/// Local bytes of an activation tensor.
Bytes activation_bytes(const ActivationTensor& tensor, const ShardShape& shard);

/// Saved activations of a layer on one rank, in bytes; a tensor saved by several operators counts
/// once. Korthikanti et al. (arXiv 2205.05198), eq. 1-4: a GPT layer with standard attention saves
/// T B H (34 + 5 A T / H) bytes unsharded, T B H (10 + 24/t + 5 A T / (H t)) with tensor-parallel
/// size t, T B H / t (34 + 5 A T / H) with sequence parallelism; the tests cover all of them. Fused
/// attention saves the softmax row sums (fp32, one per head and token) instead of scores, so
/// selective recomputation makes no difference. A fully recomputed block saves only its input;
/// kBlocks is treated as kNone, as only the caller knows the block's index. Excludes logits. Each
/// quantized GEMM saves its own copy of its input; other operators save theirs in 16 bits.
Bytes kept_activation_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                            const Recompute& recompute);

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

/// Saved activations of a layer under `memory` minus kept_activation_bytes(); not positive.
Bytes kept_bytes_change(const ModelGraph& model, LayerId layer, const ShardShape& shard,
                        const TrainerMemory& memory);

/// One weight matrix of a layer on one rank.
struct WeightMatrix {
  std::int64_t rows = 0, columns = 0;
  int count = 1;  ///< experts on this rank with a matrix of this shape
  friend auto operator<=>(const WeightMatrix&, const WeightMatrix&) = default;
};
/// The matrices of Linear and ExpertLinear, in the order of the operators.
std::vector<WeightMatrix> weight_matrices(const ModelGraph& model, LayerId layer,
                                          const ShardShape& shard);
/// Elements of the largest table that the layer looks up; 0: none.
std::int64_t local_table_elements(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// The input of the head before the product with its weights, for all tokens of the tensor group.
Bytes gathered_head_input(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// The largest tensor that a task of the layer uses, gathered if necessary; excludes logits.
Bytes largest_activation(const ModelGraph& model, LayerId layer, const ShardShape& shard);

/// Number of parameters of a layer on one rank.
struct LocalParameters {
  std::int64_t dense = 0;   ///< replicated over data ranks (and context ranks)
  std::int64_t expert = 0;  ///< replicated over the ranks holding the same experts
  friend bool operator==(const LocalParameters&, const LocalParameters&) = default;
};
constexpr LocalParameters& operator+=(LocalParameters& a, const LocalParameters& b) {
  a.dense += b.dense;
  a.expert += b.expert;
  return a;
}
LocalParameters local_parameters(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// The same per parameter tensor, in the order of the layer's operators.
struct LocalParameter {
  std::int64_t count = 0;
  bool expert = false;
  bool quantized = false;  ///< the matrix of a quantized GEMM
  friend bool operator==(const LocalParameter&, const LocalParameter&) = default;
};
std::vector<LocalParameter> local_parameter_list(const ModelGraph& model, LayerId layer,
                                                 const ShardShape& shard);
/// Elements on one rank of the layer's parameters that are sharded by vocabulary: the token table,
/// or the weights (and bias) of the logits; included in local_parameters(). A tied table counts in
/// the first layer only.
std::int64_t local_vocabulary_parameters(const ModelGraph& model, LayerId layer,
                                         const ShardShape& shard);
/// The parameters of a layer on one rank whose gradients must be summed over tensor ranks, because
/// each rank sees only part of the data. Replicated parameters applied to sharded tokens (sequence
/// parallelism: norms, biases of row-parallel layers, routers) or to sharded heads (query and key
/// norms) are summed over all tensor ranks; replicated key and value heads over their copies.
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

/// Extra memory of attention during context-parallel communication; see ContextAlgorithm. Backward:
/// keys and values, and the same amount for their gradients; all-to-all: as in the forward pass.
struct ContextBuffers {
  Bytes forward, backward;
  friend bool operator==(const ContextBuffers&, const ContextBuffers&) = default;
};
ContextBuffers context_buffers(const ModelGraph& model, LayerId layer, const ShardShape& shard);
/// Size of the queries, keys and values, and outputs of one rank before any communication.
struct AttentionBytes {
  Bytes queries, key_values, outputs;
};
AttentionBytes attention_bytes(const Attention& attention, const ShardShape& shard);

/// Elements of the tied embedding table on one rank: the size of the copy that the head's device
/// holds if the embedding is on another device. Zero for untied models.
std::int64_t local_tied_parameters(const ModelGraph& model, const ShardShape& shard);

}  // namespace meshwright
