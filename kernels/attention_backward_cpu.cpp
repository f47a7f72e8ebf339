// Attention backward (FlashAttention-2, arXiv 2307.08691, algorithm 2): tiles of keys outside,
// tiles of queries inside. The gradients of a tile of keys are summed over all query heads that
// share it; those of the queries of one key/value head are kept in fp32 until the last tile of
// keys.
#include "kernels/attention_tiles.hpp"
#include "kernels/check_arguments.hpp"
#include "kernels/cpu.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

/// Working memory, all fp32. "packed" as left or right matrix of a product (gemm_packed.hpp).
struct BackwardTiles {
  float *keys_right, *values_right;   ///< K^T [D, keys] and V^T [Dv, keys] of the tile, packed
  float* keys_again;                  ///< K [keys, D], packed: for dQ
  float *queries_left, *dout_left;    ///< Q [queries, D], dO [queries, Dv], packed
  float *queries_right, *dout_right;  ///< the same as right matrices: for dK and dV
  float *scores, *dscores;            ///< [kQueryTile, kKeyTile]: P, then dS
  float* packed;                      ///< one of these as left matrix, transposed or not
  float *dk, *dv;                     ///< of the tile: [kKeyTile, D], [kKeyTile, Dv]
  float* dq;                          ///< of all query heads that share the key head: [.., Tq, D]
  Bytes bytes;
};
BackwardTiles backward_tiles(const AttentionShape& s, void* memory) {
  Pieces pieces(memory);
  BackwardTiles t{};
  const std::int64_t key_width = round_up(s.key_size, kTileColumns);
  const std::int64_t value_width = round_up(s.value_size, kTileColumns);
  const std::int64_t tall_keys = round_up(kKeyTile, kTileRows);
  t.keys_right = pieces.take(kKeyTile * s.key_size);
  t.values_right = pieces.take(kKeyTile * s.value_size);
  t.keys_again = pieces.take(kKeyTile * key_width);
  t.queries_left = pieces.take(kQueryTile * s.key_size);
  t.dout_left = pieces.take(kQueryTile * s.value_size);
  t.queries_right = pieces.take(kQueryTile * key_width);
  t.dout_right = pieces.take(kQueryTile * value_width);
  t.scores = pieces.take(kQueryTile * kKeyTile);
  t.dscores = pieces.take(kQueryTile * kKeyTile);
  t.packed = pieces.take(kQueryTile * tall_keys);
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
};
struct QueryTile {
  std::int64_t head, first, count;
  std::int64_t in_group;  ///< head - first head of the group
};

/// P = e^(S - log_sum_exp) in `scores`, dS = scale P (dP - delta) in `dscores`; zero where unseen.
void differentiate_row(const AttentionBackward& a, const KeyTile& k, const QueryTile& q,
                       std::int64_t row, const BackwardTiles& t) {
  const AttentionShape& s = a.shape;
  const KeyRange range = visible_keys(s, q.first + row, k.first, k.count);
  const std::int64_t statistic = (k.sequence * s.heads + q.head) * s.queries + q.first + row;
  const float log_sum_exp = a.log_sum_exp.data()[statistic], delta = a.delta.data()[statistic];
  const float scale = s.scale;
  float* p = t.scores + row * kKeyTile;
  float* ds = t.dscores + row * kKeyTile;
  for (std::int64_t i = 0; i < range.first; ++i) p[i] = ds[i] = 0;
  for (std::int64_t i = range.end; i < k.count; ++i) p[i] = ds[i] = 0;
  MESHWRIGHT_INDEPENDENT
  for (std::int64_t i = range.first; i < range.end; ++i) {
    const float probability = exponential(p[i] - log_sum_exp);
    p[i] = probability;
    ds[i] = scale * probability * (ds[i] - delta);
  }
}

void add_query_tile(const AttentionBackward& a, const KeyTile& k, const QueryTile& q,
                    const BackwardTiles& t) {
  const AttentionShape& s = a.shape;
  const Operand queries = head_of(a.q, k.sequence * s.queries + q.first, q.head, s.key_size);
  const Operand dout = head_of(a.dout, k.sequence * s.queries + q.first, q.head, s.value_size);
  pack_left(queries, q.count, s.key_size, t.queries_left);
  pack_left(dout, q.count, s.value_size, t.dout_left);
  pack_right(queries, q.count, s.key_size, t.queries_right);
  pack_right(dout, q.count, s.value_size, t.dout_right);
  multiply_packed(q.count, k.count, s.key_size, t.queries_left, t.keys_right, t.scores, kKeyTile,
                  {.alpha = s.scale});
  multiply_packed(q.count, k.count, s.value_size, t.dout_left, t.values_right, t.dscores, kKeyTile,
                  {});
  for (std::int64_t row = 0; row < q.count; ++row) differentiate_row(a, k, q, row, t);
  pack_left(floats(t.scores, kKeyTile, true), k.count, q.count, t.packed);
  multiply_packed(k.count, s.value_size, q.count, t.packed, t.dout_right, t.dv, s.value_size,
                  {.beta = 1});
  pack_left(floats(t.dscores, kKeyTile, true), k.count, q.count, t.packed);
  multiply_packed(k.count, s.key_size, q.count, t.packed, t.queries_right, t.dk, s.key_size,
                  {.beta = 1});
  pack_left(floats(t.dscores, kKeyTile), q.count, k.count, t.packed);
  multiply_packed(q.count, s.key_size, k.count, t.packed, t.keys_again,
                  t.dq + (q.in_group * s.queries + q.first) * s.key_size, s.key_size, {.beta = 1});
}

/// Rows of fp32 into a part of a gradient.
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

void add_key_tile(const AttentionBackward& a, const KeyTile& k, const BackwardTiles& t) {
  const AttentionShape& s = a.shape;
  const std::int64_t row = k.sequence * s.keys + k.first, sharing = s.heads / s.key_value_heads;
  const Operand keys = head_of(a.k, row, k.group, s.key_size);
  pack_right(transposed(keys), s.key_size, k.count, t.keys_right);
  pack_right(transposed(head_of(a.v, row, k.group, s.value_size)), s.value_size, k.count,
             t.values_right);
  pack_right(keys, k.count, s.key_size, t.keys_again);
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

Bytes scratch(const AttentionBackward& a) { return backward_tiles(a.shape, nullptr).bytes; }

void run(const Launch& launch, const AttentionBackward& a) {
  check(a);
  const AttentionShape& s = a.shape;
  const BackwardTiles t = backward_tiles(s, launch.scratch);
  MW_CHECK(launch.scratch_size.value >= t.bytes.value);
  const std::int64_t sharing = s.heads / s.key_value_heads;
  for (std::int64_t sequence = 0; sequence < s.sequences; ++sequence)
    for (std::int64_t group = 0; group < s.key_value_heads; ++group) {
      clear(t.dq, sharing * s.queries * s.key_size);
      for (std::int64_t first = 0; first < s.keys; first += kKeyTile)
        add_key_tile(a, {sequence, group, first, smaller(kKeyTile, s.keys - first)}, t);
      for (std::int64_t i = 0; i < sharing; ++i)
        write_rows(a.dq, sequence * s.queries, (group * sharing + i) * s.key_size, s.queries,
                   s.key_size, t.dq + i * s.queries * s.key_size, a.accumulate);
    }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
