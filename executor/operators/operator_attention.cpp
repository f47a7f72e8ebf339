// Attention over all local keys: this rank's own, those gathered from context ranks, or whole
// sequences of some of the heads. For ring attention see ring_attention.cpp.
#include <cmath>

#include "core/base/check.hpp"
#include "executor/operators/attention_calls.hpp"

namespace meshwright {
namespace {

bool exchanges_heads(const OperatorPass& pass) {
  return pass.sharding.strategy.degrees.context > 1 &&
         pass.sharding.strategy.model_parallelism.context == ContextAlgorithm::kAllToAll;
}
bool goes_round_a_ring(const OperatorPass& pass) {
  return pass.sharding.strategy.degrees.context > 1 &&
         pass.sharding.strategy.model_parallelism.context == ContextAlgorithm::kRing;
}

}  // namespace

LocalHeads local_heads(const OperatorPass& pass, const Attention& attention) {
  const int tensors = pass.sharding.strategy.degrees.tensor;
  const auto share = [](std::int64_t heads, int ranks) { return divide_up(heads, ranks); };
  LocalHeads local{.heads = attention.heads / tensors,
                   .key_value_heads = share(attention.key_value_heads, tensors),
                   .first = attention.heads / tensors * pass.sharding.at.tensor};
  if (!exchanges_heads(pass)) return local;
  const int contexts = pass.sharding.strategy.degrees.context;
  local.heads /= contexts;
  local.key_value_heads /= contexts;
  local.first += local.heads * pass.sharding.at.context;
  return local;
}

std::vector<QueryRun> query_runs(const OperatorPass& pass) {
  const std::int64_t sequences = pass.sharding.shard.sequences;
  if (exchanges_heads(pass)) {
    const std::int64_t length = pass.sharding.shard.sequence_length;
    return {{0, sequences * length, 0, sequences, 0, length}};
  }
  const std::vector<SequencePiece> pieces =
      sequence_pieces(pass.sharding.strategy, pass.sharding.at.context);
  if (pieces.size() == 1)
    return {{0, sequences * pieces[0].length, 0, sequences, pieces[0].first_position,
             pieces[0].length}};
  std::vector<QueryRun> runs;
  for (std::int64_t b = 0; b < sequences; ++b)
    for (const SequencePiece& piece : pieces)
      runs.push_back({b * pass.sharding.tokens.sequence + piece.first_row, piece.length, b, 1,
                      piece.first_position, piece.length});
  return runs;
}

bool meet(const Attention& attention, const QueryRun& queries, const KeyRun& keys) {
  if (!attention.causal) return true;
  if (keys.first_position >= queries.first_position + queries.length) return false;
  const AttentionShape shape{.window = attention.window.value_or(0),
                             .chunk = attention.chunk.value_or(0)};
  return keys.first_position + keys.length > first_key_seen(shape, queries.first_position);
}

AttentionShape call_shape(const OperatorPass& pass, const Attention& attention,
                          const QueryRun& queries, const KeyRun& keys) {
  const LocalHeads heads = local_heads(pass, attention);
  return {.sequences = queries.sequences,
          .heads = heads.heads,
          .key_value_heads = heads.key_value_heads,
          .queries = queries.length,
          .keys = keys.length,
          .key_size = attention.key_size,
          .value_size = attention.value_size,
          .scale = static_cast<float>(
              attention.scale.value_or(1 / std::sqrt(static_cast<double>(attention.key_size)))),
          .softcap = static_cast<float>(attention.softcap),
          .causal = attention.causal,
          .window = attention.window.value_or(0),
          .chunk = attention.chunk.value_or(0),
          .first_query = queries.first_position,
          .first_key = keys.first_position,
          .dropout = {.mask = pass.dropout_mask(attention.dropout),
                      .first_sequence = pass.rows.first_sequence + queries.first_sequence,
                      .length = pass.sharding.shard.sequence_length,
                      .first_head = heads.first,
                      .heads = attention.heads}};
}

std::span<float> statistics_of(std::span<float> all, const QueryRun& queries, std::int64_t heads) {
  return all.subspan(static_cast<std::size_t>(queries.first_row * heads),
                     static_cast<std::size_t>(queries.rows * heads));
}

// ---- sinks ----

namespace {

/// The sinks of a call's heads, as a block of the sinks of this tensor rank.
Block sinks_of_call(const OperatorPass& pass, const AttentionShape& shape) {
  const auto& attention = std::get<Attention>(pass.op().shape);
  const std::int64_t held = attention.heads / pass.sharding.strategy.degrees.tensor;
  const std::int64_t first = shape.dropout.first_head - held * pass.sharding.at.tensor;
  return {first, first + shape.heads};
}

}  // namespace

void add_sinks(OperatorPass& pass, const AttentionShape& shape, const Matrix& out,
               std::span<float> log_sum_exp) {
  if (pass.op().parameters.empty()) return;
  const Block mine = sinks_of_call(pass, shape);
  const Vector sinks = flat(pass.parameters.weight(pass.op().parameters.front()));
  pass.rank.run(pass.rank.kernels.attention_sinks,
                {.shape = shape,
                 .sinks = part_of(sinks, mine.begin, mine.size()),
                 .out = out,
                 .log_sum_exp = log_sum_exp});
}

void add_sink_gradients(OperatorPass& pass, const AttentionShape& shape,
                        std::span<const float> log_sum_exp, std::span<const float> delta) {
  if (pass.op().parameters.empty()) return;
  const Block mine = sinks_of_call(pass, shape);
  const TensorId id = pass.op().parameters.front();
  const Vector sinks = flat(pass.parameters.weight(id));
  const Vector gradient = part_of(flat(pass.parameters.gradient(id)), mine.begin, mine.size());
  pass.rank.run(
      pass.rank.kernels.attention_sinks_gradient,
      {.shape = shape,
       .sinks = part_of(sinks, mine.begin, mine.size()),
       .log_sum_exp = log_sum_exp,
       .delta = delta,
       .dsinks = {static_cast<float*>(gradient.data), static_cast<std::size_t>(gradient.size)}});
}

// ---- the operator ----

namespace {

/// All keys of the sequences of a call.
KeyRun all_keys(const OperatorPass& pass, const QueryRun& queries) {
  const std::int64_t length = pass.sharding.shard.sequence_length;
  return {queries.first_sequence * length, queries.sequences * length, 0, length};
}

/// The query, key, value or gradient as the kernels see it: heads of whole sequences after an
/// all-to-all.
Matrix seen(OperatorPass& pass, TensorId tensor) {
  return exchanges_heads(pass) ? pass.at(tensor, Form::kHeadCutValue) : pass.whole(tensor);
}

}  // namespace

void forward(OperatorPass& pass, const Attention& attention) {
  if (goes_round_a_ring(pass)) return ring_forward(pass, attention);
  const Matrix q = exchanges_heads(pass) ? seen(pass, pass.input(0)) : pass.value(pass.input(0));
  const Matrix k = seen(pass, pass.input(1)), v = seen(pass, pass.input(2));
  const LocalHeads heads = local_heads(pass, attention);
  const Matrix out = exchanges_heads(pass)
                         ? pass.make(pass.output(), Form::kHeadCutValue, q.rows,
                                     heads.heads * attention.value_size, pass.rank.dtype)
                         : pass.make_value(pass.output(), q.rows);
  const std::span<float> sums = floats_of(pass.make_softmax_sums(q.rows * heads.heads));
  for (const QueryRun& queries : query_runs(pass)) {
    const KeyRun keys = all_keys(pass, queries);
    const AttentionShape shape = call_shape(pass, attention, queries, keys);
    const Matrix part = rows_of(out, queries.first_row, queries.rows);
    const std::span<float> statistics = statistics_of(sums, queries, heads.heads);
    pass.rank.run(pass.rank.kernels.attention_forward,
                  {.shape = shape,
                   .q = rows_of(q, queries.first_row, queries.rows),
                   .k = rows_of(k, keys.first_row, keys.rows),
                   .v = rows_of(v, keys.first_row, keys.rows),
                   .out = part,
                   .log_sum_exp = statistics});
    add_sinks(pass, shape, part, statistics);
  }
}

namespace {

/// Gradients of queries, keys and values as the kernels write them.
struct AttentionGradients {
  Matrix dq, dk, dv;
};

AttentionGradients make_gradients(OperatorPass& pass, const Matrix& q, const Matrix& k,
                                  const Matrix& v) {
  const auto make = [&](std::size_t i, Form form, const Matrix& like) {
    MW_CHECK(pass.state.find(pass.input(i), form) == nullptr);  // no other consumer
    return pass.make(pass.input(i), form, like.rows, like.columns, pass.rank.dtype);
  };
  if (exchanges_heads(pass))
    return {make(0, Form::kHeadCutGradient, q), make(1, Form::kHeadCutGradient, k),
            make(2, Form::kHeadCutGradient, v)};
  // With context parallelism every rank computes gradients of all keys, which are summed later.
  const bool cut = pass.sharding.strategy.degrees.context > 1;
  const Form form = cut ? Form::kPartialGradient : Form::kGradient;
  return {make(0, Form::kGradient, q), make(1, form, k), make(2, form, v)};
}

}  // namespace

void backward_input(OperatorPass& pass, const Attention& attention) {
  if (goes_round_a_ring(pass)) return ring_backward(pass, attention);
  const bool head_cut = exchanges_heads(pass);
  const Matrix q = head_cut ? seen(pass, pass.input(0)) : pass.value(pass.input(0));
  const Matrix k = seen(pass, pass.input(1)), v = seen(pass, pass.input(2));
  const Matrix dout =
      head_cut ? pass.at(pass.output(), Form::kHeadCutGradient) : pass.gradient(pass.output());
  const LocalHeads heads = local_heads(pass, attention);
  const std::span<float> sums = pass.state.statistics.at(pass.id.value).floats();
  OwnedMatrix& delta = pass.state.attention_delta;  // exchanged with the gradient
  if (!head_cut) delta = pass.rank.numbers(std::ssize(sums));
  const AttentionGradients gradients = make_gradients(pass, q, k, v);
  const std::vector<QueryRun> runs = query_runs(pass);
  if (runs.size() > 1)
    for (const Matrix& m : {gradients.dq, gradients.dk, gradients.dv}) clear(pass, m);
  for (const QueryRun& queries : runs) {
    const KeyRun keys = all_keys(pass, queries);
    const AttentionShape shape = call_shape(pass, attention, queries, keys);
    const std::span<float> deltas = statistics_of(delta.floats(), queries, heads.heads);
    const std::span<float> statistics = statistics_of(sums, queries, heads.heads);
    const ConstMatrix out =
        head_cut ? ConstMatrix()
                 : rows_of(pass.value(pass.output()), queries.first_row, queries.rows);
    if (!head_cut)
      pass.rank.run(pass.rank.kernels.attention_delta,
                    {.shape = shape,
                     .out = out,
                     .dout = rows_of(dout, queries.first_row, queries.rows),
                     .delta = deltas});
    pass.rank.run(pass.rank.kernels.attention_backward,
                  {.shape = shape,
                   .q = rows_of(q, queries.first_row, queries.rows),
                   .k = rows_of(k, keys.first_row, keys.rows),
                   .v = rows_of(v, keys.first_row, keys.rows),
                   .dout = rows_of(dout, queries.first_row, queries.rows),
                   .log_sum_exp = statistics,
                   .delta = deltas,
                   .dq = rows_of(gradients.dq, queries.first_row, queries.rows),
                   .dk = rows_of(gradients.dk, keys.first_row, keys.rows),
                   .dv = rows_of(gradients.dv, keys.first_row, keys.rows),
                   .accumulate = runs.size() > 1,
                   .out = out});
    add_sink_gradients(pass, shape, statistics, deltas);
  }
  delta = OwnedMatrix();
}

}  // namespace meshwright
