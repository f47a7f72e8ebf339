/// Local sizes of tensors and operators under a strategy's sharding. Depends on the operator and
/// its sharding only, not on costs or devices.
#pragma once

#include <cstdint>

#include "core/base/dtype.hpp"
#include "core/base/units.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

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

/// Elements, and bytes, of an activation on one rank.
std::int64_t activation_elements(const ActivationTensor& tensor, const ShardShape& shard);
Bytes activation_bytes(const ActivationTensor& tensor, const ShardShape& shard);

/// Bytes of a stored activation or weight element; see storage_dtype().
Bytes stored_element(Dtype dtype);

/// True for a GEMM in the quantized dtype of the shard: a linear layer of a block whose sizes are
/// multiples of 16, as Transformer Engine requires.
bool is_quantized(const ModelGraph& model, OperatorId op, const ShardShape& shard);
/// Number of copies of a quantized operand: along rows, and along columns if that is another one.
int quantized_copies(const ShardShape& shard);

/// Rows of a vocabulary table or head, padded to a multiple of 128 x tensor as in Megatron-LM
/// (--make-vocab-size-divisible-by 128), so that every tensor rank has an equal, aligned shard.
std::int64_t padded_vocabulary(std::int64_t rows, int tensor);

}  // namespace meshwright
