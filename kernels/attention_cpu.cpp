// Attention forward. For each key/value head, keys and values are packed once; then every tile of
// queries of every query head that shares them runs over the tiles of keys with a running maximum
// and sum (FlashAttention-2, arXiv 2307.08691, algorithm 1).
#include "kernels/attention_tiles.hpp"
#include "kernels/check_arguments.hpp"
#include "kernels/cpu.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// Working memory, all fp32.
struct ForwardTiles {
  float* keys;           ///< K^T, packed: [D, Tk]
  float* values;         ///< V, packed tile by tile: [Tk, Dv]
  float* queries;        ///< one tile, packed: [kQueryTile, D]
  float* scores;         ///< [kQueryTile, kKeyTile]
  float* probabilities;  ///< the same, packed
  float* out;            ///< [kQueryTile, value_stride], not yet divided by the sums
  float* maximum;        ///< [kQueryTile]
  float* sum;            ///< [kQueryTile]
  std::int64_t value_stride;
  Bytes bytes;
};
ForwardTiles forward_tiles(const AttentionShape& s, void* memory) {
  Pieces pieces(memory);
  ForwardTiles t{};
  t.value_stride = round_up(s.value_size, kTileColumns);
  const std::int64_t keys = round_up(s.keys, kKeyTile);
  t.keys = pieces.take(keys * s.key_size);
  t.values = pieces.take(keys * t.value_stride);
  t.queries = pieces.take(kQueryTile * s.key_size);
  t.scores = pieces.take(kQueryTile * kKeyTile);
  t.probabilities = pieces.take(kQueryTile * kKeyTile);
  t.out = pieces.take(kQueryTile * t.value_stride);
  t.maximum = pieces.take(kQueryTile);
  t.sum = pieces.take(kQueryTile);
  t.bytes = pieces.bytes();
  return t;
}

void pack_keys_and_values(const AttentionForward& a, std::int64_t sequence, std::int64_t head,
                          const ForwardTiles& t) {
  const AttentionShape& s = a.shape;
  for (std::int64_t key = 0; key < s.keys; key += kKeyTile) {
    const std::int64_t count = smaller(kKeyTile, s.keys - key), row = sequence * s.keys + key;
    pack_right(transposed(head_of(a.k, row, head, s.key_size)), s.key_size, count,
               t.keys + key * s.key_size);
    pack_right(head_of(a.v, row, head, s.value_size), count, s.value_size,
               t.values + key * t.value_stride);
  }
}

/// Turns the scores of one row into probabilities relative to the new running maximum.
void fold_row(const ForwardTiles& t, std::int64_t row, KeyRange range, std::int64_t keys) {
  float* score = t.scores + row * kKeyTile;
  const std::int64_t count = range.end - range.first;
  const float here = maximum_of(count, [&](std::int64_t i) { return score[range.first + i]; });
  const float before = t.maximum[row], maximum = larger(here, before);
  for (std::int64_t i = 0; i < range.first; ++i) score[i] = 0;
  for (std::int64_t i = range.end; i < keys; ++i) score[i] = 0;
  if (count == 0) return;
  for (std::int64_t i = range.first; i < range.end; ++i) score[i] = exponential(score[i] - maximum);
  Lanes lanes;
  lanes.add(count, [&](std::int64_t i) { return score[range.first + i]; });
  const float shrink = exponential(before - maximum);
  t.sum[row] = t.sum[row] * shrink + lanes.total();
  t.maximum[row] = maximum;
  if (shrink == 1.0F) return;
  float* out = t.out + row * t.value_stride;
  for (std::int64_t d = 0; d < t.value_stride; ++d) out[d] *= shrink;
}

struct QueryTile {
  std::int64_t sequence, head, first, count;
};

void write_tile(const AttentionForward& a, const QueryTile& tile, const ForwardTiles& t) {
  const AttentionShape& s = a.shape;
  Chunk buffer;
  for (std::int64_t r = 0; r < tile.count; ++r) {
    const bool sees_any = t.sum[r] > 0 || t.sum[r] != t.sum[r];  // NaN goes on
    const float divisor = sees_any ? 1.0F / t.sum[r] : 0.0F;
    for_each_chunk(s.value_size, [&](std::int64_t first, std::int64_t count) {
      const std::int64_t row = tile.sequence * s.queries + tile.first + r;
      const std::int64_t column = tile.head * s.value_size + first;
      float* out = target(a.out, row, column, buffer);
      const float* from = t.out + r * t.value_stride + first;
      for (std::int64_t d = 0; d < count; ++d) out[d] = from[d] * divisor;
      store(a.out, row, column, count, out);
    });
    const std::int64_t statistic =
        (tile.sequence * s.heads + tile.head) * s.queries + tile.first + r;
    const double log_sum = __builtin_log(static_cast<double>(t.sum[r]));
    a.log_sum_exp.data()[statistic] =
        sees_any ? static_cast<float>(static_cast<double>(t.maximum[r]) + log_sum)
                 : -__builtin_inff();
  }
}

void attend(const AttentionForward& a, const QueryTile& tile, const ForwardTiles& t) {
  const AttentionShape& s = a.shape;
  pack_left(head_of(a.q, tile.sequence * s.queries + tile.first, tile.head, s.key_size), tile.count,
            s.key_size, t.queries);
  for (std::int64_t r = 0; r < kQueryTile; ++r) t.maximum[r] = -__builtin_inff(), t.sum[r] = 0;
  for (std::int64_t i = 0; i < kQueryTile * t.value_stride; ++i) t.out[i] = 0;
  for (std::int64_t key = 0; key < s.keys; key += kKeyTile) {
    const std::int64_t keys = smaller(kKeyTile, s.keys - key);
    if (!any_visible(s, tile.first, tile.count, key, keys)) continue;
    multiply_packed(tile.count, keys, s.key_size, t.queries, t.keys + key * s.key_size, t.scores,
                    kKeyTile, {.alpha = s.scale});
    for (std::int64_t r = 0; r < tile.count; ++r)
      fold_row(t, r, visible_keys(s, tile.first + r, key, keys), keys);
    pack_left(floats(t.scores, kKeyTile), tile.count, keys, t.probabilities);
    multiply_packed(tile.count, s.value_size, keys, t.probabilities,
                    t.values + key * t.value_stride, t.out, t.value_stride, {.beta = 1});
  }
  write_tile(a, tile, t);
}

}  // namespace

Bytes scratch(const AttentionForward& a) { return forward_tiles(a.shape, nullptr).bytes; }

void run(const Launch& launch, const AttentionForward& a) {
  check(a);
  const AttentionShape& s = a.shape;
  const ForwardTiles t = forward_tiles(s, launch.scratch);
  if (s.sequences == 0 || s.queries == 0) return;
  MW_CHECK(launch.scratch_size.value >= t.bytes.value);
  const std::int64_t sharing = s.heads / s.key_value_heads;
  for (std::int64_t sequence = 0; sequence < s.sequences; ++sequence)
    for (std::int64_t group = 0; group < s.key_value_heads; ++group) {
      pack_keys_and_values(a, sequence, group, t);
      for (std::int64_t head = group * sharing; head < (group + 1) * sharing; ++head)
        for (std::int64_t first = 0; first < s.queries; first += kQueryTile)
          attend(a, {sequence, head, first, smaller(kQueryTile, s.queries - first)}, t);
    }
}

namespace {

/// Calls body(row, first column, statistic) for every query of every head.
template <class Body>
void for_each_query(const AttentionShape& s, const Body& body) {
  for (std::int64_t row = 0; row < s.sequences * s.queries; ++row)
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::int64_t sequence = row / s.queries, query = row % s.queries;
      body(row, head * s.value_size, (sequence * s.heads + head) * s.queries + query);
    }
}

}  // namespace

void run(const Launch&, const AttentionMerge& a) {
  check(a);
  const std::int64_t size = a.shape.value_size;
  Chunk out_buffer, before_buffer, block_buffer;
  for_each_query(a.shape, [&](std::int64_t row, std::int64_t column, std::int64_t statistic) {
    float& running = a.log_sum_exp.data()[statistic];
    const float other = a.block_log_sum_exp.data()[statistic];
    const float maximum = larger(running, other);
    if (maximum == -__builtin_inff()) return;
    const float mine = exponential(running - maximum), theirs = exponential(other - maximum);
    const float sum = mine + theirs;
    for_each_chunk(size, [&](std::int64_t first, std::int64_t count) {
      const float* before = load(a.out, row, column + first, count, before_buffer);
      const float* block = load(a.block, row, column + first, count, block_buffer);
      float* out = target(a.out, row, column + first, out_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t d = 0; d < count; ++d)
        out[d] = before[d] * (mine / sum) + block[d] * (theirs / sum);
      store(a.out, row, column + first, count, out);
    });
    running =
        static_cast<float>(static_cast<double>(maximum) + __builtin_log(static_cast<double>(sum)));
  });
}

void run(const Launch&, const AttentionDelta& a) {
  check(a);
  const std::int64_t size = a.shape.value_size;
  Chunk out_buffer, dout_buffer;
  for_each_query(a.shape, [&](std::int64_t row, std::int64_t column, std::int64_t statistic) {
    Lanes lanes;
    for_each_chunk(size, [&](std::int64_t first, std::int64_t count) {
      const float* out = load(a.out, row, column + first, count, out_buffer);
      const float* dout = load(a.dout, row, column + first, count, dout_buffer);
      lanes.add(count, [&](std::int64_t i) { return out[i] * dout[i]; });
    });
    a.delta.data()[statistic] = lanes.total();
  });
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
