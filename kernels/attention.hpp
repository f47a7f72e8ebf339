/// softmax(scale Q K^T) V, fused: scores are never stored (FlashAttention-2, arXiv 2307.08691).
///
/// Notation: B sequences, A query heads, G key/value heads (A / G query heads share one), Tq
/// queries and Tk keys per sequence, D size of a query or key, Dv size of a value.
/// Per-query statistics are fp32 [B, A, Tq].
///
/// Ring context parallelism (arXiv 2310.01889): a rank calls AttentionForward once per block of
/// keys and folds each result into a running one with AttentionMerge; the backward pass calls
/// AttentionBackward per block with the final log_sum_exp and delta, and accumulates. Positions
/// determine which part of the causal mask applies to a block.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/dropout.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_ATTENTION_KERNELS(X)               \
  X(attention_forward,        AttentionForward)       \
  X(attention_merge,          AttentionMerge)         \
  X(attention_delta,          AttentionDelta)         \
  X(attention_backward,       AttentionBackward)      \
  X(attention_sinks,          AttentionSinks)         \
  X(attention_sinks_gradient, AttentionSinksGradient)
// clang-format on

/// Dropout of attention probabilities. In the mask, query t of head h and sequence b is row
/// ((first_sequence + b) length + position of t) heads + first_head + h, and a key's position is
/// the column.
struct AttentionDropout {
  DropoutMask mask = {};
  std::int64_t first_sequence = 0, length = 0;  ///< global index of sequence 0; sequence length
  std::int64_t first_head = 0, heads = 0;       ///< global index of head 0; total number of heads
  [[gnu::always_inline]] constexpr std::int64_t row_of(std::int64_t sequence, std::int64_t position,
                                                       std::int64_t head) const {
    return ((first_sequence + sequence) * length + position) * heads + first_head + head;
  }
};

struct AttentionShape {
  std::int64_t sequences = 1;                   ///< B
  std::int64_t heads = 1, key_value_heads = 1;  ///< A, G; G divides A
  std::int64_t queries = 0, keys = 0;           ///< Tq, Tk
  std::int64_t key_size = 0, value_size = 0;    ///< D, Dv
  float scale = 1;                              ///< usually 1 / sqrt(D)
  float softcap = 0;  ///< scores become softcap tanh(score / softcap) (Gemma 2); 0: none
  /// A query at position p sees keys at positions <= p, and > p - window unless window is 0. With a
  /// chunk, it sees no keys before the last multiple of it: one of window and chunk is 0.
  bool causal = true;
  std::int64_t window = 0, chunk = 0;
  std::int64_t first_query = 0, first_key = 0;  ///< position of query 0 and of key 0
  AttentionDropout dropout = {};                ///< none if its probability is 0
};
/// Position of the first key that a causal query sees; may be negative.
[[gnu::always_inline]] constexpr std::int64_t first_key_seen(const AttentionShape& s,
                                                             std::int64_t query_position) {
  if (s.chunk > 0) return query_position - query_position % s.chunk;
  return s.window > 0 ? query_position - s.window + 1 : 0;
}
/// Position behind the last causal query that sees a key, of queries before position `end`.
[[gnu::always_inline]] constexpr std::int64_t end_of_queries_seeing(const AttentionShape& s,
                                                                    std::int64_t key_position,
                                                                    std::int64_t end) {
  const std::int64_t seen = s.chunk > 0    ? key_position - key_position % s.chunk + s.chunk
                            : s.window > 0 ? key_position + s.window
                                           : end;
  return seen < end ? seen : end;
}

inline void check(const AttentionShape& s) {
  MW_CHECK(s.sequences >= 0 && s.queries >= 0 && s.keys >= 0);
  MW_CHECK(s.heads > 0 && s.key_value_heads > 0 && s.heads % s.key_value_heads == 0);
  MW_CHECK(s.key_size > 0 && s.value_size > 0);
  MW_CHECK(s.window >= 0 && s.chunk >= 0 && (s.window == 0 || s.chunk == 0));
  MW_CHECK(s.dropout.mask.probability >= 0 && s.dropout.mask.probability < 1);
}
inline void check_queries(const AttentionShape& s, const ConstMatrix& m, std::int64_t size) {
  check_shape(m, s.sequences * s.queries, s.heads * size);
}
inline void check_keys(const AttentionShape& s, const ConstMatrix& m, std::int64_t size) {
  check_shape(m, s.sequences * s.keys, s.key_value_heads * size);
}
inline std::int64_t statistics_of(const AttentionShape& s) {
  return s.sequences * s.heads * s.queries;
}

/// out = softmax(...) V and log_sum_exp = log(sum of e^score). A query without visible keys gets
/// zeros and -infinity.
struct AttentionForward {
  AttentionShape shape = {};
  ConstMatrix q = {};                 ///< [B Tq, A D]
  ConstMatrix k = {};                 ///< [B Tk, G D]
  ConstMatrix v = {};                 ///< [B Tk, G Dv]
  Matrix out = {};                    ///< [B Tq, A Dv]
  std::span<float> log_sum_exp = {};  ///< [B, A, Tq]
};
inline void check(const AttentionForward& a) {
  check(a.shape);
  check_queries(a.shape, a.q, a.shape.key_size);
  check_keys(a.shape, a.k, a.shape.key_size);
  check_keys(a.shape, a.v, a.shape.value_size);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_size(a.log_sum_exp, statistics_of(a.shape));
}

/// Merges the result for one block of keys into the running result:
///   l' = log(e^l + e^m),  out' = out e^(l - l') + block e^(m - l')
/// Start with out = 0 and log_sum_exp = -infinity. Keep `out` in fp32 if there are many blocks.
struct AttentionMerge {
  AttentionShape shape = {};
  Matrix out = {};                    ///< [B Tq, A Dv], updated
  std::span<float> log_sum_exp = {};  ///< [B, A, Tq], updated
  ConstMatrix block = {};
  std::span<const float> block_log_sum_exp = {};
};
inline void check(const AttentionMerge& a) {
  check(a.shape);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_queries(a.shape, a.block, a.shape.value_size);
  check_size(a.log_sum_exp, statistics_of(a.shape));
  check_size(a.block_log_sum_exp, statistics_of(a.shape));
}

/// Attention sinks: one extra score per head, without a value (gpt-oss; StreamingLLM, arXiv
/// 2309.17453). Applied after the last block of keys.
///   l' = log(e^l + e^sink),  out' = out e^(l - l')
struct AttentionSinks {
  AttentionShape shape = {};
  ConstVector sinks = {};             ///< [A]
  Matrix out = {};                    ///< [B Tq, A Dv], updated
  std::span<float> log_sum_exp = {};  ///< [B, A, Tq], updated
};
inline void check(const AttentionSinks& a) {
  check(a.shape);
  check_size(a.sinks, a.shape.heads);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_size(a.log_sum_exp, statistics_of(a.shape));
}
/// dsinks[h] -= sum over queries of e^(sink - log_sum_exp) delta. The other gradients are those of
/// AttentionBackward with the new log_sum_exp and delta.
struct AttentionSinksGradient {
  AttentionShape shape = {};
  ConstVector sinks = {};
  std::span<const float> log_sum_exp = {}, delta = {};
  std::span<float> dsinks = {};  ///< [A], added to
};
inline void check(const AttentionSinksGradient& a) {
  check(a.shape);
  check_size(a.sinks, a.shape.heads);
  check_size(a.log_sum_exp, statistics_of(a.shape));
  check_size(a.delta, statistics_of(a.shape));
  check_size(a.dsinks, a.shape.heads);
}

/// delta = sum over Dv of dout * out: the term shared by all keys of a query.
struct AttentionDelta {
  AttentionShape shape = {};
  ConstMatrix out = {}, dout = {};  ///< [B Tq, A Dv]
  std::span<float> delta = {};      ///< [B, A, Tq]
};
inline void check(const AttentionDelta& a) {
  check(a.shape);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_queries(a.shape, a.dout, a.shape.value_size);
  check_size(a.delta, statistics_of(a.shape));
}

/// With P = e^(scale Q K^T - log_sum_exp):  dV = P^T dO,  dS = P (dO V^T - delta), with a softcap
/// times 1 - (score / softcap)^2,
/// dQ = scale dS K,  dK = scale dS^T Q; query heads that share a key head are summed.
struct AttentionBackward {
  AttentionShape shape = {};
  ConstMatrix q = {}, k = {}, v = {}, dout = {};
  std::span<const float> log_sum_exp = {}, delta = {};  ///< of the whole row, not of this block
  Matrix dq = {}, dk = {}, dv = {};  ///< shapes of q, k, v; use fp32 to accumulate over blocks
  bool accumulate = false;           ///< add to dq, dk, dv
  /// [B Tq, A Dv] or empty: the result for the whole row. Library kernels compute delta from it.
  ConstMatrix out = {};
};
inline void check(const AttentionBackward& a) {
  check(a.shape);
  if (!a.out.empty()) check_queries(a.shape, a.out, a.shape.value_size);
  for (const ConstMatrix& m : {a.q, ConstMatrix(a.dq)}) check_queries(a.shape, m, a.shape.key_size);
  for (const ConstMatrix& m : {a.k, ConstMatrix(a.dk)}) check_keys(a.shape, m, a.shape.key_size);
  for (const ConstMatrix& m : {a.v, ConstMatrix(a.dv)}) check_keys(a.shape, m, a.shape.value_size);
  check_queries(a.shape, a.dout, a.shape.value_size);
  check_size(a.log_sum_exp, statistics_of(a.shape));
  check_size(a.delta, statistics_of(a.shape));
}

}  // namespace meshwright
