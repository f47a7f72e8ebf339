// Attention and rotary positions; keys and values gathered over context ranks.
#include <cmath>
#include <cstring>

#include "core/check.hpp"
#include "executor/operator_pass.hpp"

namespace meshwright {
namespace {

constexpr double kRotaryBase = 10'000;  // arXiv 2104.09864, section 3.2.2

/// The attention that reads what a rotary operator writes.
const Attention& attention_behind(const OperatorPass& pass) {
  const std::vector<Operator>& all = pass.rank.model.operators;
  for (std::size_t i = pass.id.index() + 1; i < all.size(); ++i)
    if (const auto* attention = std::get_if<Attention>(&all[i].shape)) return *attention;
  MW_CHECK(false);
}

/// Turns heads of `size` by the positions of the rows; backwards for gradients.
void rotate(OperatorPass& pass, const ConstMatrix& x, const Matrix& y, std::int64_t size,
            bool inverse) {
  const std::vector<float> frequencies = rotary_frequencies(size, kRotaryBase);
  std::vector<float> table(static_cast<std::size_t>(pass.rank.strategy.sequence_length * size));
  pass.rank.run(pass.rank.kernels.rotary_table, {.frequencies = frequencies,
                                                 .first_position = 0,
                                                 .positions = pass.rank.strategy.sequence_length,
                                                 .table = table});
  pass.rank.run(pass.rank.kernels.rotary, {.x = x,
                                           .y = y,
                                           .heads = x.columns / size,
                                           .head_size = size,
                                           .rotated = size,
                                           .table = table,
                                           .positions = pass.rows.positions,
                                           .inverse = inverse});
}

}  // namespace

void forward(OperatorPass& pass, const RotaryEmbedding&) {
  const std::int64_t size = attention_behind(pass).key_size;
  for (std::size_t i = 0; i < pass.op().inputs.size(); ++i) {
    const Matrix x = pass.value(pass.input(i));
    rotate(pass, x, pass.make_value(pass.output(i), x.rows), size, false);
  }
}

void backward_input(OperatorPass& pass, const RotaryEmbedding&) {
  const std::int64_t size = attention_behind(pass).key_size;
  for (std::size_t i = 0; i < pass.op().inputs.size(); ++i) {
    const Matrix dy = pass.gradient(pass.output(i));
    MW_CHECK(pass.state.find(pass.input(i), Form::kGradient) == nullptr);
    const Matrix dx = pass.make(pass.input(i), Form::kGradient, dy.rows, dy.columns,
                                pass.rank.dtype, MemoryClass::kWorking);
    rotate(pass, dy, dx, size, true);
  }
}

// ---- attention ----

namespace {

AttentionShape shape_of(const OperatorPass& pass, const Attention& attention) {
  const int tensor = pass.rank.strategy.degrees.tensor;
  return {.sequences = pass.rank.shard.sequences,
          .heads = attention.heads / tensor,
          .key_value_heads = attention.key_value_heads / tensor,
          .queries = pass.rank.tokens.sequence,
          .keys = pass.rank.shard.sequence_length,
          .key_size = attention.key_size,
          .value_size = attention.value_size,
          .scale = static_cast<float>(1 / std::sqrt(static_cast<double>(attention.key_size))),
          .causal = attention.causal,
          .window = attention.window.value_or(0),
          .first_query = pass.rank.at.context * pass.rank.tokens.sequence,
          .first_key = 0};
}
std::int64_t statistics_of(const AttentionShape& shape) {
  return shape.sequences * shape.heads * shape.queries;
}

}  // namespace

void forward(OperatorPass& pass, const Attention& attention) {
  const AttentionShape shape = shape_of(pass, attention);
  const Matrix q = pass.value(pass.input(0));
  const Matrix out = pass.make_value(pass.output(), q.rows);
  OwnedMatrix& sums = pass.state.statistics[pass.id.value];
  sums = OwnedMatrix();
  sums = pass.rank.matrix(MemoryClass::kActivations, 1, statistics_of(shape), Dtype::kFp32);
  pass.rank.run(pass.rank.kernels.attention_forward, {.shape = shape,
                                                      .q = q,
                                                      .k = pass.whole(pass.input(1)),
                                                      .v = pass.whole(pass.input(2)),
                                                      .out = out,
                                                      .log_sum_exp = sums.floats()});
}

void backward_input(OperatorPass& pass, const Attention& attention) {
  const AttentionShape shape = shape_of(pass, attention);
  const Matrix out = pass.value(pass.output()), dout = pass.gradient(pass.output());
  const Matrix q = pass.value(pass.input(0));
  const Matrix k = pass.whole(pass.input(1)), v = pass.whole(pass.input(2));
  const std::span<float> sums = pass.state.statistics.at(pass.id.value).floats();
  std::vector<float> delta(sums.size());
  pass.rank.run(pass.rank.kernels.attention_delta,
                {.shape = shape, .out = out, .dout = dout, .delta = delta});
  const auto make = [&](std::size_t i, Form form, const Matrix& like) {
    MW_CHECK(pass.state.find(pass.input(i), form) == nullptr);  // no other reader
    return pass.make(pass.input(i), form, like.rows, like.columns, pass.rank.dtype,
                     MemoryClass::kWorking);
  };
  // Under context parallelism every rank has gradients of all keys, summed afterwards.
  const bool cut = pass.rank.strategy.degrees.context > 1;
  const Form form = cut ? Form::kPartialGradient : Form::kGradient;
  pass.rank.run(pass.rank.kernels.attention_backward, {.shape = shape,
                                                       .q = q,
                                                       .k = k,
                                                       .v = v,
                                                       .dout = dout,
                                                       .log_sum_exp = sums,
                                                       .delta = delta,
                                                       .dq = make(0, Form::kGradient, q),
                                                       .dk = make(1, form, k),
                                                       .dv = make(2, form, v)});
}

// ---- context parallelism ----

namespace {

/// Rows travel as [context rank][sequence][token], attention wants [sequence][context rank][token].
class ContextLayout {
 public:
  ContextLayout(const OperatorPass& pass, std::int64_t columns)
      : sequences_(pass.rank.shard.sequences),
        ranks_(pass.rank.strategy.degrees.context),
        run_(static_cast<std::size_t>(pass.rank.tokens.sequence * columns *
                                      bytes_per_element(pass.rank.dtype))) {}
  std::size_t bytes() const { return static_cast<std::size_t>(sequences_ * ranks_) * run_; }
  void to_sequences(const std::byte* by_rank, std::byte* by_sequence) const {
    for_each_run([&](std::size_t rank_first, std::size_t sequence_first) {
      std::memcpy(by_sequence + sequence_first, by_rank + rank_first, run_);
    });
  }
  void to_ranks(const std::byte* by_sequence, std::byte* by_rank) const {
    for_each_run([&](std::size_t rank_first, std::size_t sequence_first) {
      std::memcpy(by_rank + rank_first, by_sequence + sequence_first, run_);
    });
  }

 private:
  template <class Visit>
  void for_each_run(Visit visit) const {
    for (std::int64_t r = 0; r < ranks_; ++r)
      for (std::int64_t s = 0; s < sequences_; ++s)
        visit(static_cast<std::size_t>(r * sequences_ + s) * run_,
              static_cast<std::size_t>(s * ranks_ + r) * run_);
  }
  std::int64_t sequences_, ranks_;
  std::size_t run_;  ///< bytes of one rank's tokens of one sequence
};

}  // namespace

Ticks gather_keys_and_values(OperatorPass& pass, RankGroup& group, Ticks ready) {
  for (const std::size_t i : {1U, 2U}) {
    const TensorId tensor = pass.input(i);
    const Matrix own = pass.value(tensor);
    const ContextLayout layout(pass, own.columns);
    std::vector<std::byte> by_rank(layout.bytes());
    const std::size_t mine = by_rank.size() / static_cast<std::size_t>(group.size());
    std::memcpy(by_rank.data() + mine * static_cast<std::size_t>(group.index()), own.data, mine);
    ready = group.all_gather(by_rank, static_cast<std::int64_t>(mine) / own.rows, ready);
    const Matrix all = pass.make(tensor, Form::kGatheredValue, own.rows * group.size(), own.columns,
                                 pass.rank.dtype, MemoryClass::kWorking);
    layout.to_sequences(by_rank.data(), static_cast<std::byte*>(all.data));
  }
  return ready;
}

Ticks scatter_key_and_value_gradients(OperatorPass& pass, RankGroup& group, Ticks ready) {
  for (const std::size_t i : {1U, 2U}) {
    const TensorId tensor = pass.input(i);
    OwnedMatrix all = std::move(*pass.state.find(tensor, Form::kPartialGradient));
    pass.state.erase(tensor, Form::kPartialGradient);
    const ContextLayout layout(pass, all.columns());
    OwnedMatrix by_rank =
        pass.rank.matrix(MemoryClass::kWorking, all.rows(), all.columns(), pass.rank.dtype);
    layout.to_ranks(all.bytes().data(), by_rank.bytes().data());
    ready = reduce_scatter(group, by_rank.view(), ready);
    const std::int64_t mine = all.rows() / group.size();
    pass.add_gradient(tensor, rows_of(by_rank.view(), mine * group.index(), mine));
  }
  return ready;
}

}  // namespace meshwright
