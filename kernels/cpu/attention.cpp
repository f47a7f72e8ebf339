// Attention forward: every tile of queries of every query head runs over the tiles of keys with a
// running maximum and sum (FlashAttention-2, arXiv 2307.08691, algorithm 1).
#include "kernels/cpu/attention_tiles.hpp"
#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// Working memory, all fp32.
struct ForwardTiles {
  float *keys, *values;  ///< one key/value head, converted: [Tk, D], [Tk, Dv]; fp32: unused
  float* queries;        ///< one tile, converted: [kQueryTile, D]; fp32: unused
  float* scores;         ///< [kQueryTile, kKeyTile]
  float* out;            ///< [kQueryTile, Dv], not yet divided by the sums
  float *maximum, *sum;  ///< [kQueryTile]
  Bytes bytes;
};
ForwardTiles forward_tiles(const AttentionForward& a, void* memory) {
  const AttentionShape& s = a.shape;
  Pieces pieces(memory);
  ForwardTiles t{};
  t.keys = pieces.take(converted(a.k, s.keys * s.key_size));
  t.values = pieces.take(converted(a.v, s.keys * s.value_size));
  t.queries = pieces.take(converted(a.q, kQueryTile * s.key_size));
  t.scores = pieces.take(kQueryTile * kKeyTile);
  t.out = pieces.take(kQueryTile * s.value_size);
  t.maximum = pieces.take(kQueryTile);
  t.sum = pieces.take(kQueryTile);
  t.bytes = pieces.bytes();
  return t;
}

/// Keys and values of one head.
struct KeyValueHead {
  Factor keys, values;
};

/// Turns the scores of one row into probabilities relative to the new running maximum.
void fold_row(const ForwardTiles& t, std::int64_t row, KeyRange range, std::int64_t keys,
              std::int64_t value_size) {
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
  float* out = t.out + row * value_size;
  for (std::int64_t d = 0; d < value_size; ++d) out[d] *= shrink;
}

struct ForwardQueryTile {
  std::int64_t sequence, head, first, count;
};

void write_tile(const AttentionForward& a, const ForwardQueryTile& tile, const ForwardTiles& t) {
  const AttentionShape& s = a.shape;
  Chunk buffer;
  for (std::int64_t r = 0; r < tile.count; ++r) {
    const bool sees_any = t.sum[r] > 0 || t.sum[r] != t.sum[r];  // NaN propagates
    const float divisor = sees_any ? 1.0F / t.sum[r] : 0.0F;
    for_each_chunk(s.value_size, [&](std::int64_t first, std::int64_t count) {
      const std::int64_t row = tile.sequence * s.queries + tile.first + r;
      const std::int64_t column = tile.head * s.value_size + first;
      float* out = target(a.out, row, column, buffer);
      const float* from = t.out + r * s.value_size + first;
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

void attend(const AttentionForward& a, const KeyValueHead& head, const ForwardQueryTile& tile,
            const ForwardTiles& t) {
  const AttentionShape& s = a.shape;
  const Factor queries = head_of(a.q, tile.sequence * s.queries + tile.first, tile.count, tile.head,
                                 s.key_size, t.queries);
  for (std::int64_t r = 0; r < kQueryTile; ++r) t.maximum[r] = -__builtin_inff(), t.sum[r] = 0;
  for (std::int64_t i = 0; i < kQueryTile * s.value_size; ++i) t.out[i] = 0;
  for (std::int64_t key = 0; key < s.keys; key += kKeyTile) {
    const std::int64_t keys = smaller(kKeyTile, s.keys - key);
    if (!any_visible(s, tile.first, tile.count, key, keys)) continue;
    multiply({.m = tile.count,
              .n = keys,
              .k = s.key_size,
              .a = queries,
              .b = {head.keys.data + key * head.keys.stride, head.keys.stride, true},
              .c = t.scores,
              .stride = kKeyTile,
              .scale = s.scale});
    for (std::int64_t r = 0; r < tile.count; ++r) {
      if (s.softcap > 0) cap_scores(t.scores + r * kKeyTile, keys, s.softcap);
      fold_row(t, r, visible_keys(s, tile.first + r, key, keys), keys, s.value_size);
      if (s.dropout.mask.probability > 0)
        drop(s, tile.sequence, tile.head, tile.first + r, key, keys, t.scores + r * kKeyTile);
    }
    multiply({.m = tile.count,
              .n = s.value_size,
              .k = keys,
              .a = {t.scores, kKeyTile},
              .b = {head.values.data + key * head.values.stride, head.values.stride},
              .c = t.out,
              .stride = s.value_size,
              .adds = true});
  }
  write_tile(a, tile, t);
}

}  // namespace

Bytes scratch(const AttentionForward& a) { return forward_tiles(a, nullptr).bytes; }

void run(const Launch& launch, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  const ForwardTiles t = forward_tiles(a, launch.scratch);
  if (s.sequences == 0 || s.queries == 0) return;
  MW_CHECK(launch.scratch_size.value >= t.bytes.value);
  const std::int64_t sharing = s.heads / s.key_value_heads;
  for (std::int64_t sequence = 0; sequence < s.sequences; ++sequence)
    for (std::int64_t group = 0; group < s.key_value_heads; ++group) {
      const std::int64_t row = sequence * s.keys;
      const KeyValueHead head{head_of(a.k, row, s.keys, group, s.key_size, t.keys),
                              head_of(a.v, row, s.keys, group, s.value_size, t.values)};
      for (std::int64_t query_head = group * sharing; query_head < (group + 1) * sharing;
           ++query_head)
        for (std::int64_t first = 0; first < s.queries; first += kQueryTile)
          attend(a, head, {sequence, query_head, first, smaller(kQueryTile, s.queries - first)}, t);
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

void run(const Launch&, const AttentionSinks& a) {
  const AttentionShape& s = a.shape;
  Chunk before_buffer, out_buffer;
  for_each_query(s, [&](std::int64_t row, std::int64_t column, std::int64_t statistic) {
    float& running = a.log_sum_exp.data()[statistic];
    const float sink = element_of(a.sinks, column / s.value_size);
    const float maximum = larger(running, sink);
    const float mine = exponential(running - maximum);
    const float sum = mine + exponential(sink - maximum);
    for_each_chunk(s.value_size, [&](std::int64_t first, std::int64_t count) {
      const float* before = load(a.out, row, column + first, count, before_buffer);
      float* out = target(a.out, row, column + first, out_buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t d = 0; d < count; ++d) out[d] = before[d] * (mine / sum);
      store(a.out, row, column + first, count, out);
    });
    running =
        static_cast<float>(static_cast<double>(maximum) + __builtin_log(static_cast<double>(sum)));
  });
}

void run(const Launch&, const AttentionSinksGradient& a) {
  const AttentionShape& s = a.shape;
  for (std::int64_t head = 0; head < s.heads; ++head) {
    const float sink = element_of(a.sinks, head);
    Lanes lanes;
    for (std::int64_t b = 0; b < s.sequences; ++b) {
      const std::int64_t first = (b * s.heads + head) * s.queries;
      const float* log_sum_exp = a.log_sum_exp.data() + first;
      const float* delta = a.delta.data() + first;
      lanes.add(s.queries,
                [&](std::int64_t i) { return exponential(sink - log_sum_exp[i]) * delta[i]; });
    }
    a.dsinks.data()[head] -= lanes.total();
  }
}

void run(const Launch&, const AttentionDelta& a) {
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
