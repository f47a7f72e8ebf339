// Communication of context ranks for attention; see ContextAlgorithm. The ring is in
// ring_attention.cpp.
#include <algorithm>

#include "core/base/check.hpp"
#include "executor/operators/attention_calls.hpp"

namespace meshwright {
namespace {

// ---- all-gather: all keys on every rank ----

/// Rows are exchanged as [context rank][sequence][its tokens], attention needs
/// [sequence][position].
template <class Visit>
void for_each_piece(const OperatorPass& pass, Visit visit) {
  const Strategy& s = pass.sharding.strategy;
  const std::int64_t local = pass.sharding.tokens.sequence;
  for (int r = 0; r < s.degrees.context; ++r)
    for (const SequencePiece& piece : sequence_pieces(s, r))
      for (std::int64_t b = 0; b < pass.sharding.shard.sequences; ++b)
        visit((r * pass.sharding.shard.sequences + b) * local + piece.first_row,
              b * s.sequence_length + piece.first_position, piece.length);
}

Ticks gather_keys_and_values(OperatorPass& pass, RankGroup& group, Ticks ready) {
  for (const std::size_t i : {1U, 2U}) {
    const TensorId tensor = pass.input(i);
    const Matrix own = pass.value(tensor);
    const std::size_t row = row_bytes_of(own);
    OwnedMatrix by_rank = pass.temporary(MemoryClass::kCommunication, own.rows * group.size(),
                                         own.columns, pass.rank.dtype);
    pass.rank.copy(
        by_rank.bytes().data() + static_cast<std::size_t>(own.rows * group.index()) * row, own.data,
        static_cast<std::size_t>(own.rows) * row);
    ready = group.all_gather(by_rank.bytes(), static_cast<std::int64_t>(row), ready);
    const Matrix all = pass.make(tensor, Form::kGatheredValue, own.rows * group.size(), own.columns,
                                 pass.rank.dtype);
    for_each_piece(pass, [&](std::int64_t from, std::int64_t to, std::int64_t rows) {
      pass.rank.copy(static_cast<std::byte*>(all.data) + static_cast<std::size_t>(to) * row,
                     by_rank.bytes().data() + static_cast<std::size_t>(from) * row,
                     static_cast<std::size_t>(rows) * row);
    });
  }
  return ready;
}

Ticks scatter_key_and_value_gradients(OperatorPass& pass, RankGroup& group, Ticks ready) {
  for (const std::size_t i : {1U, 2U}) {
    const TensorId tensor = pass.input(i);
    OwnedMatrix all = std::move(*pass.state.find(tensor, Form::kPartialGradient));
    const std::size_t row = row_bytes_of(all.view());
    OwnedMatrix by_rank =
        pass.temporary(MemoryClass::kCommunication, all.rows(), all.columns(), pass.rank.dtype);
    for_each_piece(pass, [&](std::int64_t to, std::int64_t from, std::int64_t rows) {
      pass.rank.copy(by_rank.bytes().data() + static_cast<std::size_t>(to) * row,
                     all.bytes().data() + static_cast<std::size_t>(from) * row,
                     static_cast<std::size_t>(rows) * row);
    });
    ready = reduce_scatter(group, by_rank.view(), ready);
    const std::int64_t mine = all.rows() / group.size();
    pass.add_gradient(tensor, rows_of(by_rank.view(), mine * group.index(), mine));
  }
  return ready;
}

// ---- all-to-all: whole sequences of some of the heads ----

/// A tensor to exchange: all heads of this rank's tokens, and this rank's heads of all tokens.
struct HeadExchange {
  Matrix tokens;  ///< [B T / n, width]
  Matrix heads;   ///< [B T, width / n]
};

/// Buffers of one all-to-all, filled and emptied by kernels: the concatenated elements of several
/// tensors, equally many for every rank.
struct Parcels {
  OwnedMatrix sent, received;  ///< one row per rank
  Parcels(OperatorPass& pass, int ranks, std::int64_t elements, Dtype dtype)
      : sent(pass.temporary(MemoryClass::kCommunication, ranks, elements, dtype, 2)),
        received(pass.temporary(MemoryClass::kCommunication, ranks, elements, dtype, 2)) {}
  Ticks exchange(RankGroup& group, Ticks ready) {
    std::vector<std::span<const std::byte>> out;
    std::vector<std::span<std::byte>> in;
    const std::size_t size = row_bytes_of(sent.view());
    for (int r = 0; r < group.size(); ++r) {
      const std::size_t first = static_cast<std::size_t>(r) * size;
      out.emplace_back(sent.bytes().subspan(first, size));
      in.push_back(received.bytes().subspan(first, size));
    }
    return group.all_to_all(out, in, ready);
  }
};

/// Views of the matrices in one rank's row, in order.
class ParcelReader {
 public:
  ParcelReader(OwnedMatrix& parcels, int rank) : rest_(flat(rows_of(parcels.view(), rank, 1))) {}
  Matrix next(std::int64_t rows, std::int64_t columns) {
    const Vector taken = part_of(rest_, 0, rows * columns);
    rest_ = part_of(rest_, taken.size, rest_.size - taken.size);
    return dense_matrix(taken.data, rows, columns, taken.dtype);
  }

 private:
  Vector rest_;
};

std::int64_t elements_of(std::span<const HeadExchange> tensors) {
  std::int64_t elements = 0;
  for (const HeadExchange& t : tensors) elements += t.tokens.rows * t.heads.columns;
  return elements;
}

/// Copies the columns of one rank's heads out of whole rows.
void pack_columns(OperatorPass& pass, const Matrix& whole, std::int64_t first, const Matrix& part) {
  pass.rank.run(pass.rank.kernels.copy_heads, {.x = whole,
                                               .y = part,
                                               .size_x = whole.columns,
                                               .from = first,
                                               .size_y = part.columns,
                                               .count = part.columns});
}
void unpack_columns(OperatorPass& pass, const Matrix& part, const Matrix& whole,
                    std::int64_t first) {
  pass.rank.run(pass.rank.kernels.copy_heads, {.x = part,
                                               .y = whole,
                                               .size_x = part.columns,
                                               .size_y = whole.columns,
                                               .to = first,
                                               .count = part.columns});
}

void copy_rows(OperatorPass& pass, const Matrix& from, const Matrix& to) {
  pass.rank.copy(to.data, from.data, static_cast<std::size_t>(to.rows) * row_bytes_of(to));
}

/// Consecutive tokens of one sequence, from a row of the rank that has them on.
struct TokenRun {
  std::int64_t row = 0, sequence = 0, position = 0, count = 0;
};
/// The tokens of a rank: a chunk of every sequence, see sequence_pieces(); of tensor ranks that
/// share the tokens, a chunk of all sequences one after another.
std::vector<TokenRun> token_runs(const OperatorPass& pass, int rank) {
  const std::int64_t length = pass.sharding.shard.sequence_length;
  std::vector<TokenRun> runs;
  if (!pass.sharding.shares_tokens) {
    const std::int64_t local = pass.sharding.tokens.sequence;
    for (std::int64_t b = 0; b < pass.sharding.shard.sequences; ++b)
      runs.push_back({b * local, b, rank * local, local});
    return runs;
  }
  const std::int64_t first = rank * pass.sharding.tokens.gathered;
  const std::int64_t end = first + pass.sharding.tokens.gathered;
  for (std::int64_t token = first; token < end; token += runs.back().count)
    runs.push_back({token - first, token / length, token % length,
                    std::min(length - token % length, end - token)});
  return runs;
}

/// Copies the tokens of a rank into the rows of whole sequences, or out of them.
void copy_tokens(OperatorPass& pass, int rank, const Matrix& theirs, const Matrix& whole,
                 bool into_whole) {
  const std::int64_t length = pass.sharding.shard.sequence_length;
  for (const TokenRun& run : token_runs(pass, rank)) {
    const Matrix part = rows_of(theirs, run.row, run.count);
    const Matrix rows = rows_of(whole, run.sequence * length + run.position, run.count);
    into_whole ? copy_rows(pass, part, rows) : copy_rows(pass, rows, part);
  }
}

/// Fills a parcel for every rank by pack(rank, tensor, part), exchanges them and empties those that
/// arrive by unpack(rank, tensor, part).
template <class Pack, class Unpack>
Ticks exchange_parts(OperatorPass& pass, std::span<const HeadExchange> tensors, RankGroup& group,
                     Ticks ready, const Pack& pack, const Unpack& unpack) {
  Parcels parcels(pass, group.size(), elements_of(tensors), pass.rank.dtype);
  const auto for_each_part = [&](OwnedMatrix& of_ranks, const auto& visit) {
    for (int r = 0; r < group.size(); ++r) {
      ParcelReader parcel(of_ranks, r);
      for (const HeadExchange& t : tensors)
        visit(r, t, parcel.next(t.tokens.rows, t.heads.columns));
    }
  };
  for_each_part(parcels.sent, pack);
  ready = parcels.exchange(group, ready);
  for_each_part(parcels.received, unpack);
  return ready;
}

/// Sends every tensor's heads to the ranks that process them.
Ticks tokens_to_heads(OperatorPass& pass, std::span<const HeadExchange> tensors, RankGroup& group,
                      Ticks ready) {
  return exchange_parts(
      pass, tensors, group, ready,
      [&](int rank, const HeadExchange& t, const Matrix& part) {
        pack_columns(pass, t.tokens, rank * t.heads.columns, part);
      },
      [&](int rank, const HeadExchange& t, const Matrix& part) {
        copy_tokens(pass, rank, part, t.heads, /*into_whole=*/true);
      });
}

/// The inverse of tokens_to_heads().
Ticks heads_to_tokens(OperatorPass& pass, std::span<const HeadExchange> tensors, RankGroup& group,
                      Ticks ready) {
  return exchange_parts(
      pass, tensors, group, ready,
      [&](int rank, const HeadExchange& t, const Matrix& part) {
        copy_tokens(pass, rank, part, t.heads, /*into_whole=*/false);
      },
      [&](int rank, const HeadExchange& t, const Matrix& part) {
        unpack_columns(pass, part, t.tokens, rank * t.heads.columns);
      });
}

HeadExchange to_heads(OperatorPass& pass, TensorId tensor, const Matrix& tokens, Form form) {
  const int ranks = pass.sharding.strategy.degrees.context;
  return {tokens,
          pass.make(tensor, form, tokens.rows * ranks, tokens.columns / ranks, pass.rank.dtype)};
}

/// Queries, keys and values stay sharded by heads until the backward pass, since only attention
/// reads them. The originals are freed after this, unless selective recomputation exchanges them
/// again.
Ticks queries_to_heads(OperatorPass& pass, RankGroup& group, Ticks ready) {
  std::vector<HeadExchange> tensors;
  for (const TensorId tensor : pass.op().inputs)
    tensors.push_back(to_heads(pass, tensor, pass.value(tensor), Form::kHeadCutValue));
  return tokens_to_heads(pass, tensors, group, ready);
}

Ticks outputs_to_tokens(OperatorPass& pass, RankGroup& group, Ticks ready) {
  OwnedMatrix heads = std::move(*pass.state.find(pass.output(), Form::kHeadCutValue));
  const HeadExchange out{pass.make_value(pass.output(), heads.rows() / group.size()), heads.view()};
  return heads_to_tokens(pass, std::span(&out, 1), group, ready);
}

/// The layout of one number per head and row of this rank's tokens: [parts, A, rows], where a part
/// is a sequence, or all tokens if they are not divided by sequence.
struct DeltaLayout {
  std::int64_t parts = 1, rows = 0;
};
DeltaLayout delta_layout(const OperatorPass& pass) {
  if (pass.sharding.shares_tokens) return {1, pass.sharding.tokens.gathered};
  return {pass.sharding.shard.sequences, pass.sharding.tokens.sequence};
}

/// Copies the numbers of a rank's tokens to those of whole sequences, [B, heads, T].
void unpack_deltas(OperatorPass& pass, int rank, const Matrix& theirs, std::int64_t heads,
                   const Matrix& whole) {
  const std::int64_t rows = theirs.columns;
  for (const TokenRun& run : token_runs(pass, rank))
    pass.rank.run(pass.rank.kernels.copy_heads,
                  {.x = rows_of(theirs, run.row / rows * heads, heads),
                   .y = rows_of(whole, run.sequence * heads, heads),
                   .size_x = theirs.columns,
                   .from = run.row % rows,
                   .size_y = whole.columns,
                   .to = run.position,
                   .count = run.count});
}

/// Exchanges the output's gradient, and delta with it: delta is computed from output and gradient,
/// which are both in token layout only before the exchange.
Ticks gradients_to_heads(OperatorPass& pass, const Attention& attention, RankGroup& group,
                         Ticks ready) {
  const Matrix dout = pass.gradient(pass.output());
  const std::int64_t heads = local_heads(pass, attention).heads, all = heads * group.size();
  const auto [parts, rows] = delta_layout(pass);
  OwnedMatrix delta = pass.temporary(MemoryClass::kWorking, parts * all, rows, Dtype::kFp32);
  pass.rank.run(pass.rank.kernels.attention_delta, {.shape = {.sequences = parts,
                                                              .heads = all,
                                                              .key_value_heads = all,
                                                              .queries = rows,
                                                              .keys = rows,
                                                              .key_size = attention.key_size,
                                                              .value_size = attention.value_size},
                                                    .out = pass.value(pass.output()),
                                                    .dout = dout,
                                                    .delta = delta.floats()});
  const HeadExchange tensor = to_heads(pass, pass.output(), dout, Form::kHeadCutGradient);
  ready = tokens_to_heads(pass, std::span(&tensor, 1), group, ready);

  Parcels deltas(pass, group.size(), parts * heads * rows, Dtype::kFp32);
  for (int r = 0; r < group.size(); ++r) {
    ParcelReader parcel(deltas.sent, r);
    for (std::int64_t p = 0; p < parts; ++p)
      copy_rows(pass, rows_of(delta.view(), p * all + r * heads, heads), parcel.next(heads, rows));
  }
  ready = deltas.exchange(group, ready);
  pass.state.attention_delta = pass.rank.numbers(delta.rows() * rows);
  const Matrix whole =
      dense_matrix(pass.state.attention_delta.view().data, pass.sharding.shard.sequences * heads,
                   pass.sharding.shard.sequence_length, Dtype::kFp32);
  for (int r = 0; r < group.size(); ++r)
    unpack_deltas(pass, r, ParcelReader(deltas.received, r).next(parts * heads, rows), heads,
                  whole);
  return ready;
}

Ticks gradients_to_tokens(OperatorPass& pass, RankGroup& group, Ticks ready) {
  std::vector<HeadExchange> tensors;
  for (const TensorId tensor : pass.op().inputs) {
    const Matrix heads = pass.at(tensor, Form::kHeadCutGradient);
    tensors.push_back({pass.make(tensor, Form::kGradient, heads.rows / group.size(),
                                 heads.columns * group.size(), pass.rank.dtype),
                       heads});
  }
  return heads_to_tokens(pass, tensors, group, ready);
}

Ticks exchange_heads(OperatorPass& pass, bool forward, RankGroup& group, Ticks ready) {
  const auto has = [&](TensorId tensor, Form form) {
    return pass.state.find(tensor, form) != nullptr;
  };
  if (forward)
    return has(pass.output(), Form::kHeadCutValue) ? outputs_to_tokens(pass, group, ready)
                                                   : queries_to_heads(pass, group, ready);
  return has(pass.input(), Form::kHeadCutGradient)
             ? gradients_to_tokens(pass, group, ready)
             : gradients_to_heads(pass, std::get<Attention>(pass.op().shape), group, ready);
}

}  // namespace

Ticks over_context_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                         Ticks ready) {
  const bool forward = collective.phase == Phase::kForward;
  switch (collective.kind) {
    case CollectiveKind::kAllGather:
      return gather_keys_and_values(pass, group, ready);
    case CollectiveKind::kReduceScatter:
      return scatter_key_and_value_gradients(pass, group, ready);
    case CollectiveKind::kAllToAll:
      return exchange_heads(pass, forward, group, ready);
    case CollectiveKind::kRingExchange:
      // The gradients of the queries exist after the backward kernels.
      return !forward && pass.state.find(pass.input(), Form::kGradient) != nullptr
                 ? finish_ring(pass, group, ready)
                 : start_ring(pass, group, ready);
    default:
      break;
  }
  MW_CHECK(false);
}

}  // namespace meshwright
