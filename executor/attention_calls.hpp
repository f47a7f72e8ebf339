/// The attention of one rank as calls of kernels: which of its queries meet which keys.
///
/// A rank with one piece of every sequence attends with one call. With an early and a late piece
/// (executor/sequence_pieces.hpp) it needs one for each sequence and piece: rows of one call must
/// be neighbours in position. Log-sum-exps and deltas lie call behind call.
#pragma once

#include <vector>

#include "executor/operator_pass.hpp"
#include "executor/sequence_pieces.hpp"

namespace meshwright {

/// Heads of this rank; all-to-all context leaves each context rank a part of them meanwhile.
struct LocalHeads {
  std::int64_t heads = 1, key_value_heads = 1;
  std::int64_t first = 0;  ///< number of the first among all heads
};
LocalHeads local_heads(const OperatorPass& pass, const Attention& attention);

/// Queries of one call.
struct QueryRun {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_sequence = 0, sequences = 1;  ///< within the micro-batch
  std::int64_t first_position = 0, length = 0;     ///< of each sequence
};
std::vector<QueryRun> query_runs(const OperatorPass& pass);

/// Keys of one call, of the sequences of a QueryRun.
struct KeyRun {
  std::int64_t first_row = 0, rows = 0;
  std::int64_t first_position = 0, length = 0;
};
bool meet(const Attention& attention, const QueryRun& queries, const KeyRun& keys);

AttentionShape call_shape(const OperatorPass& pass, const Attention& attention,
                          const QueryRun& queries, const KeyRun& keys);

/// The call's part of values per query and head.
std::span<float> statistics_of(std::span<float> all, const QueryRun& queries, std::int64_t heads);

/// Scores that belong to no key, behind all keys of a call; nothing for models without.
void add_sinks(OperatorPass& pass, const AttentionShape& shape, const Matrix& out,
               std::span<float> log_sum_exp);
void add_sink_gradients(OperatorPass& pass, const AttentionShape& shape,
                        std::span<const float> log_sum_exp, std::span<const float> delta);

/// Keys and values travel round the context ranks while each block is worked on
/// (executor/ring_attention.cpp).
void ring_forward(OperatorPass& pass, const Attention& attention);
void ring_backward(OperatorPass& pass, const Attention& attention);

}  // namespace meshwright
