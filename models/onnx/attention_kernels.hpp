/// Kernels of fused attention: softmax(Q K^T) V without materialized scores.
#pragma once

#include <cstdint>

#include "core/base/kernel.hpp"
#include "core/base/units.hpp"

namespace meshwright::onnx {

struct AttentionSize {
  std::int64_t batch = 1;  ///< sequences times heads
  std::int64_t queries = 1, keys = 1, key_size = 1, value_size = 1;
  bool causal = false;   ///< skips half of the scores
  bool dropout = false;  ///< of the probabilities
  Bytes operands;        ///< queries, keys, values and result
};

/// The number of scores, each with a query and a key.
double scores_of(const AttentionSize& size);
/// The logarithm of the sum of every row of scores, which is saved.
Bytes softmax_statistics(const AttentionSize& size);
/// Forward (kForward): QK^T and PV. Backward (kBackwardInput): QK^T again, then dV, dP, dQ, dK.
Kernel attention_kernel(const AttentionSize& size, Phase phase, Dtype dtype);

}  // namespace meshwright::onnx
