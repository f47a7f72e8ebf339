/// Masking and dropout shared by the CUDA attention kernels. Internal; for .cu files only.
#pragma once

#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {

__device__ inline bool sees(const AttentionShape& s, std::int64_t query, std::int64_t key) {
  if (!s.causal) return true;
  const std::int64_t at_query = s.first_query + query, at_key = s.first_key + key;
  return at_key <= at_query && at_key >= first_key_seen(s, at_query);
}

struct Range {
  std::int64_t first, end;
};
__device__ inline std::int64_t clamped(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value < low ? low : (value > high ? high : value);
}
/// Keys visible to at least one query of [first, last]: the last query sees furthest ahead, the
/// first one furthest back.
__device__ inline Range keys_seen(const AttentionShape& s, std::int64_t first, std::int64_t last) {
  if (!s.causal) return {0, s.keys};
  const std::int64_t end = clamped(s.first_query - s.first_key + last + 1, 0, s.keys);
  return {clamped(first_key_seen(s, s.first_query + first) - s.first_key, 0, end), end};
}
/// Queries that see at least one key of [first, last].
__device__ inline Range queries_seeing(const AttentionShape& s, std::int64_t first,
                                       std::int64_t last) {
  if (!s.causal) return {0, s.queries};
  const std::int64_t begin = clamped(s.first_key - s.first_query + first, 0, s.queries);
  const std::int64_t end = end_of_queries_seeing(s, s.first_key + last, s.first_query + s.queries);
  return {begin, clamped(end - s.first_query, begin, s.queries)};
}

__device__ inline std::int64_t statistic_of(const AttentionShape& s, std::int64_t sequence,
                                            std::int64_t head, std::int64_t query) {
  return (sequence * s.heads + head) * s.queries + query;
}

/// Dropout of probabilities: the threshold of the mask and the factor of kept elements.
struct Keeping {
  std::uint32_t threshold;  ///< 0: everything is kept
  float factor;
};
inline Keeping keeping_of(const AttentionShape& s) {
  const float probability = s.dropout.mask.probability;
  return {probability == 0 ? 0U : dropout_threshold(probability), 1 / (1 - probability)};
}
__device__ inline float kept_factor(const AttentionShape& s, const Keeping& keeping,
                                    std::uint32_t row, std::int64_t key) {
  if (keeping.threshold == 0) return 1.0F;
  return is_kept(row, s.first_key + key, keeping.threshold) ? keeping.factor : 0.0F;
}
__device__ inline std::uint32_t kept_row(const AttentionShape& s, const Keeping& keeping,
                                         std::int64_t sequence, std::int64_t head,
                                         std::int64_t query) {
  if (keeping.threshold == 0) return 0;
  return dropout_row(s.dropout.mask.key, s.dropout.row_of(sequence, s.first_query + query, head));
}

/// Attention on tensor cores (attention_tensor.cu): bf16, heads up to 128 wide, no dropout.
bool fits_tensor_cores(const AttentionForward& a);
bool fits_tensor_cores(const AttentionBackward& a);
void run_on_tensor_cores(cudaStream_t stream, const AttentionForward& a);
void run_on_tensor_cores(cudaStream_t stream, const AttentionBackward& a);

/// Attention by cuDNN (attention_cudnn.cpp), in builds that define MESHWRIGHT_CUDNN. Returns false
/// without any effect if cuDNN cannot run this case.
bool run_by_cudnn(cudaStream_t stream, const AttentionForward& a);
bool run_by_cudnn(cudaStream_t stream, const AttentionBackward& a);

}  // namespace meshwright::cuda
