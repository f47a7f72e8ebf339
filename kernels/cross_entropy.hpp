/// Softmax cross-entropy over the vocabulary, whole or sharded over tensor-parallel ranks.
///
///   loss[n] = log(sum over v of e^logit[n, v]) - logit[n, target[n]]
///
/// One rank: CrossEntropyForward, then CrossEntropyGradient. Sharded vocabulary:
/// CrossEntropyMaximum, all-reduce max; CrossEntropySum, all-reduce sum of `sum` and
/// `target_logit`; CrossEntropyLoss; CrossEntropyGradient (Megatron-LM's vocab-parallel loss, arXiv
/// 1909.08053, section 3).
/// A target of -1 masks a row: its loss and gradient are zero.
/// Columns from `tokens` on are vocabulary padding: they have no token ID, their gradient is zero.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/argument_checks.hpp"
#include "kernels/launch.hpp"
#include "kernels/tensor_view.hpp"

namespace meshwright {

// Rows of the list in kernel_table.hpp.
// clang-format off
#define MESHWRIGHT_CROSS_ENTROPY_KERNELS(X)       \
  X(cross_entropy_maximum,  CrossEntropyMaximum)  \
  X(cross_entropy_sum,      CrossEntropySum)      \
  X(cross_entropy_loss,     CrossEntropyLoss)     \
  X(cross_entropy_forward,  CrossEntropyForward)  \
  X(cross_entropy_gradient, CrossEntropyGradient)
// clang-format on

/// This rank's logits and the token ID of their first column.
struct LogitShard {
  ConstMatrix logits = {};       ///< [N, columns]
  std::int64_t tokens = 0;       ///< columns with a token ID; <= columns
  std::int64_t first_token = 0;  ///< global token ID of column 0
};
inline void check(const LogitShard& s) {
  check_view(s.logits);
  MW_CHECK(s.tokens >= 0 && s.tokens <= s.logits.columns);
  MW_CHECK(s.first_token >= 0);
}

inline void check_rows(const LogitShard& s, std::span<const std::int32_t> targets,
                       std::span<const float> maximum, std::span<const float> sum) {
  check(s);
  check_size(targets, s.logits.rows);
  check_size(maximum, s.logits.rows);
  check_size(sum, s.logits.rows);
}

struct CrossEntropyMaximum {
  LogitShard shard = {};
  std::span<float> maximum = {};  ///< [N] out; -infinity where tokens = 0
};
inline void check(const CrossEntropyMaximum& a) {
  check(a.shard);
  check_size(a.maximum, a.shard.logits.rows);
}

struct CrossEntropySum {
  LogitShard shard = {};
  std::span<const std::int32_t> targets = {};  ///< [N] global token IDs
  std::span<const float> maximum = {};         ///< [N] over all ranks
  std::span<float> sum = {};                   ///< [N] out: sum of e^(logit - maximum) here
  std::span<float> target_logit = {};          ///< [N] out: 0 where another rank has the target
};
inline void check(const CrossEntropySum& a) {
  check_rows(a.shard, a.targets, a.maximum, a.sum);
  check_size(a.target_logit, a.shard.logits.rows);
}

struct CrossEntropyLoss {
  std::span<const std::int32_t> targets = {};
  std::span<const float> maximum = {}, sum = {}, target_logit = {};  ///< [N] over all ranks
  std::span<float> loss = {};                                        ///< [N] out
};
inline void check(const CrossEntropyLoss& a) {
  const std::int64_t rows = std::ssize(a.targets);
  check_size(a.maximum, rows);
  check_size(a.sum, rows);
  check_size(a.target_logit, rows);
  check_size(a.loss, rows);
}

/// The three above in one pass over the logits.
struct CrossEntropyForward {
  LogitShard shard = {};
  std::span<const std::int32_t> targets = {};
  std::span<float> maximum = {}, sum = {};  ///< [N] out: saved for the gradient
  std::span<float> loss = {};               ///< [N] out
};
inline void check(const CrossEntropyForward& a) {
  check_rows(a.shard, a.targets, a.maximum, a.sum);
  check_size(a.loss, a.shard.logits.rows);
}

/// dlogits = scale (softmax - one_hot(target)); scale is 1 / tokens of the batch for a mean.
struct CrossEntropyGradient {
  LogitShard shard = {};
  std::span<const std::int32_t> targets = {};
  std::span<const float> maximum = {}, sum = {};
  float scale = 1;
  Matrix dlogits = {};  ///< [N, columns]; may be the logits
};
inline void check(const CrossEntropyGradient& a) {
  check_rows(a.shard, a.targets, a.maximum, a.sum);
  check_same_shape(a.shard.logits, {a.dlogits});
}

}  // namespace meshwright
