/// One rank's attention as kernel calls: which of its queries attend to which keys.
///
/// A rank with one contiguous chunk of every sequence needs one call. With an early and a late
/// chunk (executor/operators/sequence_pieces.hpp) it needs one call per sequence and chunk, since
/// the rows of a call must have consecutive positions. Log-sum-exps and deltas are stored call by
/// call.
#pragma once

#include <vector>

#include "executor/operators/operator_pass.hpp"
#include "executor/operators/sequence_pieces.hpp"

namespace meshwright {

/// Attention heads computed on this rank; all-to-all context parallelism shards them over the
/// context group during attention.
struct LocalHeads {
  std::int64_t heads = 1, key_value_heads = 1;
  std::int64_t first = 0;  ///< index of the first among all heads
};
LocalHeads local_heads(const OperatorPass& pass, const Attention& attention);

/// The queries of one call.
struct QueryRun {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_sequence = 0, sequences = 1;  ///< within the micro-batch
  std::int64_t first_position = 0, length = 0;     ///< of each sequence
};
std::vector<QueryRun> query_runs(const OperatorPass& pass);

/// The keys of one call, for the sequences of its QueryRun.
struct KeyRun {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_position = 0, length = 0;
};
bool meet(const Attention& attention, const QueryRun& queries, const KeyRun& keys);

AttentionShape call_shape(const OperatorPass& pass, const Attention& attention,
                          const QueryRun& queries, const KeyRun& keys);

/// The slice of a per-query, per-head array that belongs to the call.
std::span<float> statistics_of(std::span<float> all, const QueryRun& queries, std::int64_t heads);

/// Attention sinks: learned logits without a key that join the softmax after the keys of a call.
/// No-op for models without sinks.
void add_sinks(OperatorPass& pass, const AttentionShape& shape, const Matrix& out,
               std::span<float> log_sum_exp);
void add_sink_gradients(OperatorPass& pass, const AttentionShape& shape,
                        std::span<const float> log_sum_exp, std::span<const float> delta);

/// Ring attention: keys and values circulate among the context ranks while each block is processed
/// (executor/operators/ring_attention.cpp).
void ring_forward(OperatorPass& pass, const Attention& attention);
void ring_backward(OperatorPass& pass, const Attention& attention);

}  // namespace meshwright
