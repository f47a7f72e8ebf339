// Rotary position embeddings: of whole heads, or (latent attention) of a part of every query and of
// one key part shared by all heads. A temperature of queries is a rotation by 0 with a magnitude.
#include <algorithm>

#include "core/base/check.hpp"
#include "executor/operators/operator_pass.hpp"

namespace meshwright {
namespace {

/// The attention that consumes the output of a rotary operator.
const Attention& attention_behind(const OperatorPass& pass) {
  const std::vector<Operator>& all = pass.rank.model.operators;
  for (std::size_t i = pass.id.index() + 1; i < all.size(); ++i)
    if (const auto* attention = std::get_if<Attention>(&all[i].shape)) return *attention;
  MW_CHECK(false);
}

/// The elements of a head that are rotated.
struct Turned {
  std::int64_t head_size = 0, first = 0, count = 0;
  const RotaryEmbedding* rotary = nullptr;
};

/// The table of all positions, which layers with the same angles share.
std::span<const float> table_of(OperatorPass& pass, const Turned& turned) {
  const RotaryEmbedding& rotary = *turned.rotary;
  const std::int64_t positions = pass.sharding.strategy.sequence_length;
  std::vector<KeptRotaryTable>& tables = pass.rank.rotary_tables();
  const auto known = std::ranges::find_if(tables, [&](const KeptRotaryTable& table) {
    return table.count == turned.count && table.angles == rotary.angles &&
           table.temperature == rotary.temperature;
  });
  if (known != tables.end()) return known->values.floats();
  const std::vector<float> frequencies =
      rotary.temperature ? std::vector<float>(static_cast<std::size_t>(turned.count / 2))
                         : rotary_frequencies(turned.count, rotary.angles, positions);
  tables.push_back({.count = turned.count,
                    .angles = rotary.angles,
                    .temperature = rotary.temperature,
                    .values = pass.rank.numbers(positions * turned.count)});
  const std::span<float> table = tables.back().values.floats();
  pass.rank.run(pass.rank.kernels.rotary_table,
                {.frequencies = frequencies,
                 .first_position = 0,
                 .positions = positions,
                 .scale = rotary.angles.magnitude,
                 .temperature = rotary.temperature.value_or(QueryTemperature()),
                 .table = table});
  return table;
}

/// Rotates by the positions of the rows; backward for gradients.
void rotate(OperatorPass& pass, const ConstMatrix& x, const Matrix& y, const Turned& turned,
            bool inverse) {
  pass.rank.run(pass.rank.kernels.rotary,
                {.x = x,
                 .y = y,
                 .heads = x.columns / turned.head_size,
                 .head_size = turned.head_size,
                 .first = turned.first,
                 .rotated = turned.count,
                 .pairs = turned.rotary->pairs,
                 .table = table_of(pass, turned),
                 .positions = pass.of_rows(std::span(pass.rows.positions), x.rows),
                 .inverse = inverse});
}

/// Queries and keys with one rotated part per head.
Turned turned_of_heads(const OperatorPass& pass, const RotaryEmbedding& rotary) {
  const std::int64_t size = attention_behind(pass).key_size;
  return {size, 0, rotary.rotated_per_head > 0 ? rotary.rotated_per_head : size, &rotary};
}

// ---- latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1.3) ----

/// A query is [without position | rotated]; a key consists of the head's part without position and
/// the rotated part shared by all heads. Inputs: queries, parts of keys without position, shared
/// part.
struct LatentSizes {
  std::int64_t heads = 1;  ///< on this rank
  std::int64_t key = 0, shared = 0;
  std::int64_t positionless() const { return key - shared; }
  const RotaryEmbedding* rotary = nullptr;
  Turned of_query() const { return {key, positionless(), shared, rotary}; }
  Turned of_shared() const { return {shared, 0, shared, rotary}; }
};
bool is_latent(const OperatorPass& pass) { return pass.op().inputs.size() == 3; }
LatentSizes latent_sizes(const OperatorPass& pass) {
  const Attention& attention = attention_behind(pass);
  return {.heads = attention.heads / pass.sharding.strategy.degrees.tensor,
          .key = attention.key_size,
          .shared = pass.rank.activation(pass.input(2)).width,
          .rotary = &std::get<RotaryEmbedding>(pass.op().shape)};
}

void forward_latent(OperatorPass& pass) {
  const LatentSizes sizes = latent_sizes(pass);
  const Matrix q = pass.value(pass.input(0)), shared = pass.whole(pass.input(2));
  rotate(pass, q, pass.make_value(pass.output(0), q.rows), sizes.of_query(), false);
  OwnedMatrix turned =
      pass.temporary(MemoryClass::kWorking, shared.rows, shared.columns, pass.rank.dtype);
  rotate(pass, shared, turned.view(), sizes.of_shared(), false);
  const Matrix keys = pass.make_value(pass.output(1), q.rows);
  pass.rank.run(pass.rank.kernels.copy_heads, {.x = pass.value(pass.input(1)),
                                               .y = keys,
                                               .heads_x = sizes.heads,
                                               .size_x = sizes.positionless(),
                                               .heads_y = sizes.heads,
                                               .size_y = sizes.key,
                                               .count = sizes.positionless()});
  pass.rank.run(pass.rank.kernels.copy_heads, {.x = turned.view(),
                                               .y = keys,
                                               .heads_x = 1,
                                               .size_x = sizes.shared,
                                               .heads_y = sizes.heads,
                                               .size_y = sizes.key,
                                               .to = sizes.positionless(),
                                               .count = sizes.shared});
}

Matrix new_gradient(OperatorPass& pass, std::size_t input, std::int64_t rows,
                    std::int64_t columns) {
  const TensorId tensor = pass.input(input);
  MW_CHECK(pass.state.find(tensor, Form::kGradient) == nullptr);  // no other consumer
  return pass.make(tensor, Form::kGradient, rows, columns, pass.rank.dtype);
}

/// The gradient of the shared part is partial over tensor ranks, each with its own heads, and
/// summed later.
void backward_latent(OperatorPass& pass) {
  const LatentSizes sizes = latent_sizes(pass);
  const Matrix dq = pass.gradient(pass.output(0)), dk = pass.gradient(pass.output(1));
  rotate(pass, dq, new_gradient(pass, 0, dq.rows, dq.columns), sizes.of_query(), true);
  pass.rank.run(pass.rank.kernels.copy_heads,
                {.x = dk,
                 .y = new_gradient(pass, 1, dk.rows, sizes.heads * sizes.positionless()),
                 .heads_x = sizes.heads,
                 .size_x = sizes.key,
                 .heads_y = sizes.heads,
                 .size_y = sizes.positionless(),
                 .count = sizes.positionless()});
  OwnedMatrix sum = pass.temporary(MemoryClass::kWorking, dk.rows, sizes.shared, pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.copy_heads, {.x = dk,
                                               .y = sum.view(),
                                               .heads_x = sizes.heads,
                                               .size_x = sizes.key,
                                               .from = sizes.positionless(),
                                               .heads_y = 1,
                                               .size_y = sizes.shared,
                                               .count = sizes.shared});
  rotate(pass, sum.view(), sum.view(), sizes.of_shared(), true);
  const Form form = pass.is_cut() ? Form::kPartialGradient : Form::kGradient;
  pass.into_gradient(pass.input(2), form, sum.view(), [&](const Matrix& dx, bool adds) {
    MW_CHECK(!adds);  // no other consumer
    pass.rank.run(pass.rank.kernels.cast, {.x = flat(sum.view()), .y = flat(dx)});
  });
}

}  // namespace

void forward(OperatorPass& pass, const RotaryEmbedding& rotary) {
  if (is_latent(pass)) return forward_latent(pass);
  const Turned turned = turned_of_heads(pass, rotary);
  for (std::size_t i = 0; i < pass.op().inputs.size(); ++i) {
    const Matrix x = pass.value(pass.input(i));
    rotate(pass, x, pass.make_value(pass.output(i), x.rows), turned, false);
  }
}

void backward_input(OperatorPass& pass, const RotaryEmbedding& rotary) {
  if (is_latent(pass)) return backward_latent(pass);
  const Turned turned = turned_of_heads(pass, rotary);
  for (std::size_t i = 0; i < pass.op().inputs.size(); ++i) {
    const Matrix dy = pass.gradient(pass.output(i));
    rotate(pass, dy, new_gradient(pass, i, dy.rows, dy.columns), turned, true);
  }
}

}  // namespace meshwright
