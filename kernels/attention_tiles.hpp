/// What the cpu kernels of attention share: tiles of scores, visible ranges, working memory.
/// Internal.
#pragma once

#include "kernels/gemm_packed.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// A tile of scores: kQueryTile x kKeyTile floats (24 KiB) stay in the second-level cache at worst.
constexpr std::int64_t kQueryTile = 48, kKeyTile = 128;
static_assert(kQueryTile % kTileRows == 0 && kKeyTile % kTileColumns == 0);

/// Keys of [first_key, first_key + keys) that a query sees: [first, end), relative to first_key.
struct KeyRange {
  std::int64_t first, end;
};
MESHWRIGHT_INLINE KeyRange visible_keys(const AttentionShape& s, std::int64_t query,
                                        std::int64_t first_key, std::int64_t keys) {
  if (!s.causal) return {0, keys};
  // The query's position, counted from the first key of the tile.
  const std::int64_t position = s.first_query + query - s.first_key - first_key;
  const std::int64_t end = smaller(keys, position + 1);
  const std::int64_t oldest = s.window == 0 ? 0 : position - s.window + 1;
  const std::int64_t first = oldest > 0 ? oldest : 0;
  return {first, end > first ? end : first};
}
/// Whether any of `queries` queries sees any of `keys` keys: the last one sees furthest ahead, the
/// first one furthest back.
MESHWRIGHT_INLINE bool any_visible(const AttentionShape& s, std::int64_t query,
                                   std::int64_t queries, std::int64_t first_key,
                                   std::int64_t keys) {
  if (!s.causal) return true;
  const std::int64_t offset = s.first_query + query - s.first_key - first_key;
  if (offset + queries - 1 < 0) return false;
  return s.window == 0 || offset - s.window + 1 < keys;
}

/// Hands out pieces of the working memory, each aligned to 64 bytes; with null it only counts.
class Pieces {
 public:
  explicit Pieces(void* memory) : memory_(static_cast<float*>(memory)) {}
  float* take(std::int64_t count) {
    float* piece = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count, 16);
    return piece;
  }
  Bytes bytes() const { return Bytes(4 * used_); }

 private:
  float* memory_;
  std::int64_t used_ = 0;
};

/// Rows of one head of queries or keys in a [B T, heads * size] matrix.
MESHWRIGHT_INLINE Operand head_of(const ConstMatrix& m, std::int64_t row, std::int64_t head,
                                  std::int64_t size) {
  return moved(operand(m, false), row, head * size);
}

}  // namespace
}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
