// One function for each kernel, in the order of the headers; a long file because it is a list.
#include "kernels/check_arguments.hpp"

#include <initializer_list>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

void check_storage(Dtype dtype) { MW_CHECK(dtype == Dtype::kFp32 || dtype == Dtype::kBf16); }

void check_view(const ConstMatrix& m) {
  check_storage(m.dtype);
  MW_CHECK(m.rows >= 0 && m.columns >= 0);
  MW_CHECK(m.stride >= m.columns || m.rows <= 1);
  MW_CHECK(m.data != nullptr || m.empty());
}
void check_view(const ConstVector& v) {
  check_storage(v.dtype);
  MW_CHECK(v.size >= 0);
  MW_CHECK(v.data != nullptr || v.empty());
}
void check_shape(const ConstMatrix& m, std::int64_t rows, std::int64_t columns) {
  check_view(m);
  MW_CHECK(m.rows == rows);
  MW_CHECK(m.columns == columns);
}
void check_same_shape(const ConstMatrix& like, std::initializer_list<ConstMatrix> others) {
  check_view(like);
  for (const ConstMatrix& m : others) check_shape(m, like.rows, like.columns);
}
void check_size(const ConstVector& v, std::int64_t size) {
  check_view(v);
  MW_CHECK(v.size == size);
}
template <class T>
void check_size(std::span<T> values, std::int64_t size) {
  MW_CHECK(std::ssize(values) == size);
}
template <class T>
void check_size_or_empty(std::span<T> values, std::int64_t size) {
  MW_CHECK(values.empty() || std::ssize(values) == size);
}

}  // namespace

// ---- products -------------------------------------------------------------------------------

void check(const Gemm& g) {
  check_view(g.a);
  check_view(g.b);
  check_view(Matrix(g.c));
  MW_CHECK(g.c.rows == (g.transpose_a ? g.a.columns : g.a.rows));
  MW_CHECK(g.c.columns == (g.transpose_b ? g.b.rows : g.b.columns));
  MW_CHECK((g.transpose_a ? g.a.rows : g.a.columns) == (g.transpose_b ? g.b.columns : g.b.rows));
  if (!g.bias.empty()) check_size(g.bias, g.c.columns);
  if (!g.gelu.empty()) check_shape(g.gelu, g.c.rows, g.c.columns);
  if (g.slope_at.empty()) return;
  check_shape(g.slope_at, g.c.rows, g.c.columns);
  MW_CHECK(g.beta == 0 && g.bias.empty() && g.gelu.empty());
}

void check(const GroupedGemm& g) {
  const std::int64_t experts = std::ssize(g.offsets) - 1;
  MW_CHECK(!g.offsets.empty());
  check_view(g.x);
  if (g.transpose_weights)
    check_shape(g.weights, experts * g.y.columns, g.x.columns);
  else
    check_shape(g.weights, experts * g.x.columns, g.y.columns);
  check_shape(g.y, g.x.rows, g.y.columns);
  if (!g.bias.empty()) check_shape(g.bias, experts, g.y.columns);
}

void check(const GroupedGemmWeight& g) {
  MW_CHECK(!g.offsets.empty());
  check_view(g.x);
  check_shape(g.dy, g.x.rows, g.dy.columns);
  check_shape(g.dweights, (std::ssize(g.offsets) - 1) * g.x.columns, g.dy.columns);
}

// ---- attention ------------------------------------------------------------------------------

namespace {

void check_shape_of(const AttentionShape& s) {
  MW_CHECK(s.sequences >= 0 && s.queries >= 0 && s.keys >= 0);
  MW_CHECK(s.heads > 0 && s.key_value_heads > 0 && s.heads % s.key_value_heads == 0);
  MW_CHECK(s.key_size > 0 && s.value_size > 0);
  MW_CHECK(s.window >= 0);
  MW_CHECK(s.dropout.mask.probability >= 0 && s.dropout.mask.probability < 1);
}
void check_queries(const AttentionShape& s, const ConstMatrix& m, std::int64_t size) {
  check_shape(m, s.sequences * s.queries, s.heads * size);
}
void check_keys(const AttentionShape& s, const ConstMatrix& m, std::int64_t size) {
  check_shape(m, s.sequences * s.keys, s.key_value_heads * size);
}
std::int64_t statistics(const AttentionShape& s) { return s.sequences * s.heads * s.queries; }

}  // namespace

void check(const AttentionForward& a) {
  check_shape_of(a.shape);
  check_queries(a.shape, a.q, a.shape.key_size);
  check_keys(a.shape, a.k, a.shape.key_size);
  check_keys(a.shape, a.v, a.shape.value_size);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_size(a.log_sum_exp, statistics(a.shape));
}

void check(const AttentionMerge& a) {
  check_shape_of(a.shape);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_queries(a.shape, a.block, a.shape.value_size);
  check_size(a.log_sum_exp, statistics(a.shape));
  check_size(a.block_log_sum_exp, statistics(a.shape));
}

void check(const AttentionSinks& a) {
  check_shape_of(a.shape);
  check_size(a.sinks, a.shape.heads);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_size(a.log_sum_exp, statistics(a.shape));
}

void check(const AttentionSinksGradient& a) {
  check_shape_of(a.shape);
  check_size(a.sinks, a.shape.heads);
  check_size(a.log_sum_exp, statistics(a.shape));
  check_size(a.delta, statistics(a.shape));
  check_size(a.dsinks, a.shape.heads);
}

void check(const AttentionDelta& a) {
  check_shape_of(a.shape);
  check_queries(a.shape, a.out, a.shape.value_size);
  check_queries(a.shape, a.dout, a.shape.value_size);
  check_size(a.delta, statistics(a.shape));
}

void check(const AttentionBackward& a) {
  check_shape_of(a.shape);
  for (const ConstMatrix& m : {a.q, ConstMatrix(a.dq)}) check_queries(a.shape, m, a.shape.key_size);
  for (const ConstMatrix& m : {a.k, ConstMatrix(a.dk)}) check_keys(a.shape, m, a.shape.key_size);
  for (const ConstMatrix& m : {a.v, ConstMatrix(a.dv)}) check_keys(a.shape, m, a.shape.value_size);
  check_queries(a.shape, a.dout, a.shape.value_size);
  check_size(a.log_sum_exp, statistics(a.shape));
  check_size(a.delta, statistics(a.shape));
}

// ---- norms, activations, rotary -------------------------------------------------------------

namespace {

void check_statistics(NormKind kind, std::span<const float> mean, std::span<const float> deviation,
                      std::int64_t count) {
  if (kind == NormKind::kLayerNorm) check_size(mean, count);
  check_size(deviation, count);
}

}  // namespace

void check(const NormForward& a) {
  check_view(a.x);
  if (a.y.data != nullptr) check_same_shape(a.x, {a.y});
  MW_CHECK(a.groups > 0 && a.x.columns % a.groups == 0);
  MW_CHECK(a.epsilon >= 0);
  check_size(a.weight, a.x.columns / a.groups);
  if (!a.bias.empty()) {
    MW_CHECK(a.kind == NormKind::kLayerNorm);
    check_size(a.bias, a.x.columns / a.groups);
  }
  check_size_or_empty(a.mean, a.x.rows * a.groups);
  check_size_or_empty(a.inverse_deviation, a.x.rows * a.groups);
}

void check(const NormBackwardInput& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  MW_CHECK(a.groups > 0 && a.x.columns % a.groups == 0);
  check_size(a.weight, a.x.columns / a.groups);
  check_statistics(a.kind, a.mean, a.inverse_deviation, a.x.rows * a.groups);
}

void check(const NormBackwardWeight& a) {
  check_same_shape(a.x, {a.dy});
  MW_CHECK(a.groups > 0 && a.x.columns % a.groups == 0);
  check_statistics(a.kind, a.mean, a.inverse_deviation, a.x.rows * a.groups);
  check_size(a.dweight, a.x.columns / a.groups);
  check_size_or_empty(a.dbias, a.x.columns / a.groups);
}

void check(const ActivationForward& a) {
  check_same_shape(a.x, {a.y});
  if (a.function == ActivationFunction::kSwiGlu) check_same_shape(a.x, {a.up});
}

void check(const ActivationBackward& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  if (a.function == ActivationFunction::kSwiGlu) check_same_shape(a.x, {a.up, a.dup});
}

void check(const RotaryTable& a) {
  MW_CHECK(a.positions >= 0 && a.first_position >= 0);
  check_size(a.table, a.positions * 2 * std::ssize(a.frequencies));
}

void check(const Rotary& a) {
  check_same_shape(a.x, {a.y});
  MW_CHECK(a.x.columns == a.heads * a.head_size);
  MW_CHECK(a.rotated >= 0 && a.rotated % 2 == 0);
  MW_CHECK(a.first >= 0 && a.first + a.rotated <= a.head_size);
  check_size(a.positions, a.x.rows);
  MW_CHECK(a.rotated == 0 || std::ssize(a.table) % a.rotated == 0);
}

void check(const CopyHeads& a) {
  check_view(a.x);
  check_view(Matrix(a.y));
  MW_CHECK(a.x.rows == a.y.rows);
  MW_CHECK(a.x.columns == a.heads_x * a.size_x);
  MW_CHECK(a.y.columns == a.heads_y * a.size_y);
  MW_CHECK(a.heads_x == a.heads_y || a.heads_x == 1 || a.heads_y == 1);
  MW_CHECK(a.count >= 0 && a.from >= 0 && a.to >= 0);
  MW_CHECK(a.from + a.count <= a.size_x);
  MW_CHECK(a.to + a.count <= a.size_y);
}

// ---- vocabulary -----------------------------------------------------------------------------

void check(const EmbeddingForward& a) {
  check_view(a.table);
  check_shape(a.y, std::ssize(a.ids), a.table.columns);
}

void check(const EmbeddingBackward& a) {
  check_shape(a.dy, std::ssize(a.ids), a.dtable.columns);
  check_view(Matrix(a.dtable));
  MW_CHECK(a.dtable.dtype == Dtype::kFp32);
}

namespace {
void check_shard(const LogitShard& s) {
  check_view(s.logits);
  MW_CHECK(s.words >= 0 && s.words <= s.logits.columns);
  MW_CHECK(s.first_word >= 0);
}
}  // namespace

void check(const CrossEntropyMaximum& a) {
  check_shard(a.shard);
  check_size(a.maximum, a.shard.logits.rows);
}

void check(const CrossEntropySum& a) {
  check_shard(a.shard);
  check_size(a.targets, a.shard.logits.rows);
  check_size(a.maximum, a.shard.logits.rows);
  check_size(a.sum, a.shard.logits.rows);
  check_size(a.target_logit, a.shard.logits.rows);
}

void check(const CrossEntropyLoss& a) {
  const std::int64_t rows = std::ssize(a.targets);
  check_size(a.maximum, rows);
  check_size(a.sum, rows);
  check_size(a.target_logit, rows);
  check_size(a.loss, rows);
}

void check(const CrossEntropyForward& a) {
  check_shard(a.shard);
  check_size(a.targets, a.shard.logits.rows);
  check_size(a.maximum, a.shard.logits.rows);
  check_size(a.sum, a.shard.logits.rows);
  check_size(a.loss, a.shard.logits.rows);
}

void check(const CrossEntropyGradient& a) {
  check_shard(a.shard);
  check_size(a.targets, a.shard.logits.rows);
  check_size(a.maximum, a.shard.logits.rows);
  check_size(a.sum, a.shard.logits.rows);
  check_same_shape(a.shard.logits, {a.dlogits});
}

// ---- elementwise ----------------------------------------------------------------------------

void check(const Add& a) { check_same_shape(a.a, {a.b, a.y}); }

void check(const BiasAdd& a) {
  check_same_shape(a.x, {a.y});
  check_size(a.bias, a.x.columns);
}

void check(const BiasGradient& a) {
  check_view(a.dy);
  check_size(a.dbias, a.dy.columns);
}

void check(const GroupedBiasGradient& a) {
  check_view(a.dy);
  MW_CHECK(!a.offsets.empty());
  check_shape(a.dbias, std::ssize(a.offsets) - 1, a.dy.columns);
  MW_CHECK(a.dbias.dtype == Dtype::kFp32);
}

void check(const RowGateForward& a) {
  check_same_shape(a.x, {a.y});
  check_shape(a.gate, a.x.rows, 1);
}

void check(const RowGateBackward& a) {
  check_same_shape(a.x, {a.dy, a.dx});
  check_same_shape(a.gate, {a.dgate});
  check_shape(a.gate, a.x.rows, 1);
}

void check(const DropoutForward& a) {
  check_same_shape(a.x, {a.y});
  check_size(a.rows, a.x.rows);
  check_size(a.kept, a.x.rows * a.x.columns);
  MW_CHECK(a.mask.probability >= 0 && a.mask.probability < 1);
}
void check(const DropoutBackward& a) {
  check_same_shape(a.dy, {a.dx});
  check_size(a.kept, a.dy.rows * a.dy.columns);
  MW_CHECK(a.probability >= 0 && a.probability < 1);
}
void check(const RoundToFloat8& a) { check_same_shape(a.x, {a.y}); }

void check(const Reduce& a) {
  check_view(a.into);
  check_size(a.from, a.into.size);
}

void check(const Cast& a) {
  check_view(a.x);
  check_size(a.y, a.x.size);
}

void check(const Fill& a) { check_view(a.y); }

void check(const Total& a) { MW_CHECK(a.total != nullptr); }

void check(const MeanSquaredErrorForward& a) {
  check_same_shape(a.x, {a.target});
  check_size(a.loss, a.x.rows);
}

void check(const MeanSquaredErrorGradient& a) { check_same_shape(a.x, {a.target, a.dx}); }

// ---- experts --------------------------------------------------------------------------------

namespace {
void check_gate(const GateShape& s) {
  MW_CHECK(s.tokens >= 0 && s.experts > 0);
  MW_CHECK(s.experts_per_token > 0 && s.experts_per_token <= s.experts);
  MW_CHECK(s.groups > 0 && s.groups <= kMostExpertGroups && s.experts % s.groups == 0);
  MW_CHECK(s.chosen_groups > 0);
  MW_CHECK(s.chosen_groups >= s.groups ||
           s.chosen_groups * (s.experts / s.groups) >= s.experts_per_token);
}
}  // namespace

void check(const GateForward& a) {
  check_gate(a.shape);
  check_size(a.logits, a.shape.tokens * a.shape.experts);
  check_size_or_empty(a.correction, a.shape.experts);
  check_size(a.scores, a.shape.tokens * a.shape.experts);
  check_size(a.experts, a.shape.tokens * a.shape.experts_per_token);
  check_size(a.weights, a.shape.tokens * a.shape.experts_per_token);
}

void check(const GateLoad& a) {
  check_gate(a.shape);
  check_size(a.scores, a.shape.tokens * a.shape.experts);
  check_size(a.experts, a.shape.tokens * a.shape.experts_per_token);
  check_size(a.choices, a.shape.experts);
  check_size(a.shares, a.shape.experts);
}

void check(const GateAuxiliaryLoss& a) {
  check_gate(a.shape);
  check_size(a.choices, a.shape.experts);
  check_size(a.shares, a.shape.experts);
  MW_CHECK(a.loss != nullptr);
}

void check(const GateBackward& a) {
  check_gate(a.shape);
  check_size(a.scores, a.shape.tokens * a.shape.experts);
  check_size(a.experts, a.shape.tokens * a.shape.experts_per_token);
  check_size(a.dweights, a.shape.tokens * a.shape.experts_per_token);
  check_size_or_empty(a.choices, a.shape.experts);
  check_size(a.dlogits, a.shape.tokens * a.shape.experts);
}

void check(const SortByExpert& a) {
  check_size(a.slot_of_row, std::ssize(a.experts));
  check_size(a.row_of_slot, std::ssize(a.experts));
}

void check(const GatherRows& a) {
  MW_CHECK(a.copies > 0);
  check_view(a.x);
  check_shape(a.y, std::ssize(a.index), a.x.columns);
  check_size_or_empty(a.scales, a.copies * a.x.rows);
}

void check(const CombineRows& a) {
  MW_CHECK(a.copies > 0);
  check_view(a.x);
  check_shape(a.y, a.y.rows, a.x.columns);
  check_size(a.index, a.copies * a.y.rows);
  check_size_or_empty(a.weights, a.copies * a.y.rows);
}

void check(const CombineWeightGradient& a) {
  MW_CHECK(a.copies > 0);
  check_view(a.x);
  check_shape(a.dy, a.dy.rows, a.x.columns);
  check_size(a.index, a.copies * a.dy.rows);
  check_size(a.dweights, a.copies * a.dy.rows);
}

// ---- optimizer and buckets ------------------------------------------------------------------

void check(const AdamW& a) {
  check_size(a.gradient, std::ssize(a.master));
  check_size(a.first_moment, std::ssize(a.master));
  check_size(a.second_moment, std::ssize(a.master));
  if (!a.parameter.empty()) check_size(a.parameter, std::ssize(a.master));
  MW_CHECK(a.step >= 1);
}

void check(const Sgd& a) {
  check_size(a.gradient, std::ssize(a.master));
  check_size_or_empty(a.velocity, std::ssize(a.master));
  MW_CHECK(a.momentum == 0 || !a.velocity.empty() || a.master.empty());
  if (!a.parameter.empty()) check_size(a.parameter, std::ssize(a.master));
}

void check(const SquaredNorm& a) {
  check_view(a.x);
  MW_CHECK(a.sum != nullptr);
}

void check(const ClipScale& a) {
  MW_CHECK(a.sum != nullptr);
  MW_CHECK(a.scale != nullptr);
  MW_CHECK(a.limit > 0);
}

namespace {
void check_parts(std::span<const BucketPart> parts, const ConstVector& bucket) {
  check_view(bucket);
  for (const BucketPart& part : parts) {
    check_view(part.vector);
    MW_CHECK(part.offset >= 0 && part.offset + part.vector.size <= bucket.size);
  }
}
}  // namespace

void check(const PackBucket& a) { check_parts(a.parts, a.bucket); }
void check(const UnpackBucket& a) { check_parts(a.parts, a.bucket); }

}  // namespace meshwright
