// Attention backward (FlashAttention-2, arXiv 2307.08691, algorithm 2): an outer loop over tiles of
// keys, an inner one over tiles of queries. The gradients of a key tile are summed over all query
// heads that share it; those of the queries of one key/value head are accumulated in fp32 until the
// last key tile.
#include "kernels/cpu/attention_tiles.hpp"
#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// Working memory, all fp32.
struct BackwardTiles {
  float *keys, *values;     ///< tile, converted: [kKeyTile, D], [kKeyTile, Dv]; fp32: unused
  float *queries, *dout;    ///< likewise: [kQueryTile, D], [kQueryTile, Dv]
  float *scores, *dscores;  ///< [kQueryTile, kKeyTile]: P, then dS
  float *dk, *dv;           ///< of the tile: [kKeyTile, D], [kKeyTile, Dv]
  float* dq;                ///< of all query heads that share the key head: [.., Tq, D]
  Bytes bytes;
};
BackwardTiles backward_tiles(const AttentionBackward& a, void* memory) {
  const AttentionShape& s = a.shape;
  Pieces pieces(memory);
  BackwardTiles t{};
  t.keys = pieces.take(converted(a.k, kKeyTile * s.key_size));
  t.values = pieces.take(converted(a.v, kKeyTile * s.value_size));
  t.queries = pieces.take(converted(a.q, kQueryTile * s.key_size));
  t.dout = pieces.take(converted(a.dout, kQueryTile * s.value_size));
  t.scores = pieces.take(kQueryTile * kKeyTile);
  t.dscores = pieces.take(kQueryTile * kKeyTile);
  t.dk = pieces.take(kKeyTile * s.key_size);
  t.dv = pieces.take(kKeyTile * s.value_size);
  t.dq = pieces.take(s.heads / s.key_value_heads * s.queries * s.key_size);
  t.bytes = pieces.bytes();
  return t;
}

void clear(float* data, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) data[i] = 0;
}

struct KeyTile {
  std::int64_t sequence, group, first, count;
  Factor keys, values;
};
struct BackwardQueryTile {
  std::int64_t head, first, count;
  std::int64_t in_group;  ///< head - first head of the group
};

/// P = e^(S - log_sum_exp) in `scores`, dS = scale P (dP - delta) in `dscores`; zero where masked.
void differentiate_row(const AttentionBackward& a, const KeyTile& k, const BackwardQueryTile& q,
                       std::int64_t row, const BackwardTiles& t) {
  const AttentionShape& s = a.shape;
  const KeyRange range = visible_keys(s, q.first + row, k.first, k.count);
  const std::int64_t statistic = (k.sequence * s.heads + q.head) * s.queries + q.first + row;
  const float log_sum_exp = a.log_sum_exp.data()[statistic], delta = a.delta.data()[statistic];
  const float scale = s.scale, inverse_cap = s.softcap > 0 ? 1.0F / s.softcap : 0.0F;
  float* p = t.scores + row * kKeyTile;
  float* ds = t.dscores + row * kKeyTile;
  if (s.softcap > 0) cap_scores(p, k.count, s.softcap);
  for (std::int64_t i = 0; i < range.first; ++i) p[i] = ds[i] = 0;
  for (std::int64_t i = range.end; i < k.count; ++i) p[i] = ds[i] = 0;
  const std::int64_t seen = range.end - range.first;
  const bool drops = s.dropout.mask.probability > 0;
  const auto drop_row = [&](float* values) {
    drop(s, k.sequence, q.head, q.first + row, k.first + range.first, seen, values + range.first);
  };
  if (drops) drop_row(ds);
  MESHWRIGHT_INDEPENDENT
  for (std::int64_t i = range.first; i < range.end; ++i) {
    const float probability = exponential(p[i] - log_sum_exp), capped = p[i] * inverse_cap;
    p[i] = probability;
    ds[i] = scale * probability * (ds[i] - delta) * (1.0F - capped * capped);
  }
  if (drops) drop_row(p);
}

void add_query_tile(const AttentionBackward& a, const KeyTile& k, const BackwardQueryTile& q,
                    const BackwardTiles& t) {
  const AttentionShape& s = a.shape;
  const std::int64_t row = k.sequence * s.queries + q.first;
  const Factor queries = head_of(a.q, row, q.count, q.head, s.key_size, t.queries);
  const Factor dout = head_of(a.dout, row, q.count, q.head, s.value_size, t.dout);
  const Factor scores{t.scores, kKeyTile}, dscores{t.dscores, kKeyTile};
  const auto product = [](std::int64_t m, std::int64_t n, std::int64_t depth, const Factor& left,
                          const Factor& right, float* c, std::int64_t stride) {
    return FloatProduct{
        .m = m, .n = n, .k = depth, .a = left, .b = right, .c = c, .stride = stride};
  };
  FloatProduct p =
      product(q.count, k.count, s.key_size, queries, transposed(k.keys), t.scores, kKeyTile);
  p.scale = s.scale;
  multiply(p);
  multiply(
      product(q.count, k.count, s.value_size, dout, transposed(k.values), t.dscores, kKeyTile));
  for (std::int64_t r = 0; r < q.count; ++r) differentiate_row(a, k, q, r, t);
  const auto add = [&](FloatProduct sum) {
    sum.adds = true;
    multiply(sum);
  };
  float* dq = t.dq + (q.in_group * s.queries + q.first) * s.key_size;
  add(product(k.count, s.value_size, q.count, transposed(scores), dout, t.dv, s.value_size));
  add(product(k.count, s.key_size, q.count, transposed(dscores), queries, t.dk, s.key_size));
  add(product(q.count, s.key_size, k.count, dscores, k.keys, dq, s.key_size));
}

/// Writes rows of fp32 to a part of a gradient.
void write_rows(const Matrix& into, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t size, const float* from, bool accumulate) {
  Chunk buffer, before_buffer;
  for (std::int64_t r = 0; r < rows; ++r)
    for_each_chunk(size, [&](std::int64_t first, std::int64_t count) {
      const float* value = from + r * size + first;
      const float* before =
          accumulate ? load(into, row + r, column + first, count, before_buffer) : value;
      float* to = target(into, row + r, column + first, buffer);
      MESHWRIGHT_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) to[i] = accumulate ? before[i] + value[i] : value[i];
      store(into, row + r, column + first, count, to);
    });
}

void add_key_tile(const AttentionBackward& a, KeyTile k, const BackwardTiles& t) {
  const AttentionShape& s = a.shape;
  const std::int64_t row = k.sequence * s.keys + k.first, sharing = s.heads / s.key_value_heads;
  k.keys = head_of(a.k, row, k.count, k.group, s.key_size, t.keys);
  k.values = head_of(a.v, row, k.count, k.group, s.value_size, t.values);
  clear(t.dk, kKeyTile * s.key_size);
  clear(t.dv, kKeyTile * s.value_size);
  for (std::int64_t i = 0; i < sharing; ++i)
    for (std::int64_t first = 0; first < s.queries; first += kQueryTile) {
      const std::int64_t count = smaller(kQueryTile, s.queries - first);
      if (any_visible(s, first, count, k.first, k.count))
        add_query_tile(a, k, {k.group * sharing + i, first, count, i}, t);
    }
  write_rows(a.dk, row, k.group * s.key_size, k.count, s.key_size, t.dk, a.accumulate);
  write_rows(a.dv, row, k.group * s.value_size, k.count, s.value_size, t.dv, a.accumulate);
}

}  // namespace

Bytes scratch(const AttentionBackward& a) { return backward_tiles(a, nullptr).bytes; }

void run(const Launch& launch, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  const BackwardTiles t = backward_tiles(a, launch.scratch);
  MW_CHECK(launch.scratch_size.value >= t.bytes.value);
  const std::int64_t sharing = s.heads / s.key_value_heads;
  for (std::int64_t sequence = 0; sequence < s.sequences; ++sequence)
    for (std::int64_t group = 0; group < s.key_value_heads; ++group) {
      clear(t.dq, sharing * s.queries * s.key_size);
      for (std::int64_t first = 0; first < s.keys; first += kKeyTile)
        add_key_tile(a, {sequence, group, first, smaller(kKeyTile, s.keys - first), {}, {}}, t);
      for (std::int64_t i = 0; i < sharing; ++i)
        write_rows(a.dq, sequence * s.queries, (group * sharing + i) * s.key_size, s.queries,
                   s.key_size, t.dq + i * s.queries * s.key_size, a.accumulate);
    }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
