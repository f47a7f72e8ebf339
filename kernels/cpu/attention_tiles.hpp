/// Score tiles, visible ranges and working memory of the CPU attention kernels. Internal.
#pragma once

#include "kernels/cpu/activation.hpp"
#include "kernels/cpu/products.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// A tile of scores: kQueryTile x kKeyTile floats (32 KiB), which stay at least in the L2 cache.
constexpr std::int64_t kQueryTile = 64, kKeyTile = 128;

/// Keys of [first_key, first_key + keys) visible to a query: [first, end), relative to first_key.
struct KeyRange {
  std::int64_t first, end;
};
MESHWRIGHT_INLINE KeyRange visible_keys(const AttentionShape& s, std::int64_t query,
                                        std::int64_t first_key, std::int64_t keys) {
  if (!s.causal) return {0, keys};
  const std::int64_t at_query = s.first_query + query, tile = s.first_key + first_key;
  const std::int64_t end = smaller(keys, at_query - tile + 1);
  const std::int64_t oldest = first_key_seen(s, at_query) - tile;
  const std::int64_t first = oldest > 0 ? smaller(oldest, keys) : 0;
  return {first, end > first ? end : first};
}
/// True if any of `queries` queries sees any of `keys` keys: the last one sees furthest ahead, the
/// first one furthest back.
MESHWRIGHT_INLINE bool any_visible(const AttentionShape& s, std::int64_t query,
                                   std::int64_t queries, std::int64_t first_key,
                                   std::int64_t keys) {
  if (!s.causal) return true;
  const std::int64_t at_query = s.first_query + query, tile = s.first_key + first_key;
  return at_query + queries - 1 >= tile && first_key_seen(s, at_query) < tile + keys;
}

MESHWRIGHT_INLINE void cap_scores(float* scores, std::int64_t count, float cap) {
  const float inverse = 1 / cap;
  MESHWRIGHT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) scores[i] = cap * tanh_of(scores[i] * inverse);
}

/// Applies dropout to the probabilities of a query for `count` keys from `first_key` on: multiplies
/// by 0 if dropped, else by 1 / (1 - p).
MESHWRIGHT_INLINE void drop(const AttentionShape& s, std::int64_t sequence, std::int64_t head,
                            std::int64_t query, std::int64_t first_key, std::int64_t count,
                            float* values) {
  const AttentionDropout& d = s.dropout;
  const std::uint32_t row =
      dropout_row(d.mask.key, d.row_of(sequence, s.first_query + query, head));
  const std::uint32_t threshold = dropout_threshold(d.mask.probability);
  const std::int64_t first = s.first_key + first_key;
  const float scale = 1 / (1 - d.mask.probability);
  MESHWRIGHT_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = is_kept(row, first + i, threshold) ? scale * values[i] : 0.0F;
}

/// Splits the working memory into pieces aligned to 64 bytes; with null memory it only counts.
class Pieces {
 public:
  explicit Pieces(void* memory) : memory_(static_cast<float*>(memory)) {}
  float* take(std::int64_t count) {
    float* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += (count + 15) / 16 * 16;
    return piece;
  }
  Bytes bytes() const { return Bytes(4 * used_); }

 private:
  float* memory_;
  std::int64_t used_ = 0;
};

/// Rows of one head of a [B T, heads * size] matrix as floats: in place, or converted into
/// `buffer`.
inline Factor head_of(const ConstMatrix& m, std::int64_t row, std::int64_t rows, std::int64_t head,
                      std::int64_t size, float* buffer) {
  return factor_of(m, false, row, head * size, rows, size, buffer);
}
/// Number of floats that head_of() needs as a buffer.
constexpr std::int64_t converted(const ConstMatrix& m, std::int64_t floats) {
  return m.dtype == Dtype::kFp32 ? 0 : floats;
}
constexpr Factor transposed(Factor f) { return {f.data, f.stride, !f.transposed}; }

}  // namespace
}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
