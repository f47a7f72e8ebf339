// What context ranks exchange for attention; see ContextAlgorithm. The ring itself is in
// ring_attention.cpp.
#include <cstring>

#include "core/check.hpp"
#include "executor/attention_calls.hpp"

namespace meshwright {
namespace {

std::size_t row_bytes_of(const ConstMatrix& m) {
  return static_cast<std::size_t>(m.columns * bytes_per_element(m.dtype));
}

// ---- all keys on every rank ----

/// Rows travel as [context rank][sequence][its tokens], attention wants [sequence][position].
template <class Visit>
void for_each_piece(const OperatorPass& pass, Visit visit) {
  const Strategy& s = pass.rank.strategy;
  const std::int64_t local = pass.rank.tokens.sequence;
  for (int r = 0; r < s.degrees.context; ++r)
    for (const SequencePiece& piece : sequence_pieces(s, r))
      for (std::int64_t b = 0; b < pass.rank.shard.sequences; ++b)
        visit((r * pass.rank.shard.sequences + b) * local + piece.first_row,
              b * s.sequence_length + piece.first_position, piece.length);
}

Ticks gather_keys_and_values(OperatorPass& pass, RankGroup& group, Ticks ready) {
  for (const std::size_t i : {1U, 2U}) {
    const TensorId tensor = pass.input(i);
    const Matrix own = pass.value(tensor);
    const std::size_t row = row_bytes_of(own);
    OwnedMatrix by_rank = pass.rank.matrix(MemoryClass::kCommunication, own.rows * group.size(),
                                           own.columns, pass.rank.dtype);
    pass.rank.copy(
        by_rank.bytes().data() + static_cast<std::size_t>(own.rows * group.index()) * row, own.data,
        static_cast<std::size_t>(own.rows) * row);
    ready = group.all_gather(by_rank.bytes(), static_cast<std::int64_t>(row), ready);
    const Matrix all = pass.make(tensor, Form::kGatheredValue, own.rows * group.size(), own.columns,
                                 pass.rank.dtype, MemoryClass::kCommunication);
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
    pass.state.erase(tensor, Form::kPartialGradient);
    const std::size_t row = row_bytes_of(all.view());
    OwnedMatrix by_rank =
        pass.rank.matrix(MemoryClass::kCommunication, all.rows(), all.columns(), pass.rank.dtype);
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

// ---- whole sequences of a part of the heads ----

/// One tensor on its way: all heads of this rank's tokens, and this rank's heads of all tokens.
struct HeadExchange {
  Matrix tokens;  ///< [B T / n, width]
  Matrix heads;   ///< [B T, width / n]
};

/// Tokens of rank r within the rows of whole sequences; contiguous, see sequence_pieces().
template <class Visit>
void for_each_row_of(const OperatorPass& pass, int rank, Visit visit) {
  const std::int64_t local = pass.rank.tokens.sequence;
  for (std::int64_t b = 0; b < pass.rank.shard.sequences; ++b)
    for (std::int64_t t = 0; t < local; ++t)
      visit(b * local + t, b * pass.rank.shard.sequence_length + rank * local + t);
}

std::byte* row_at(const Matrix& m, std::int64_t row) {
  return static_cast<std::byte*>(m.data) + static_cast<std::size_t>(row) * row_bytes_of(m);
}

/// Messages of one all-to-all, packed by rank: as much for every one.
class Parcels {
 public:
  Parcels(OperatorPass& pass, int ranks, std::size_t bytes_of_rank)
      : rank_(pass.rank),
        size_(bytes_of_rank),
        sent_(made(pass, ranks)),
        received_(made(pass, ranks)) {}
  std::byte* sent(int rank) { return sent_.data() + static_cast<std::size_t>(rank) * size_; }
  const std::byte* received(int rank) {
    return received_.data() + static_cast<std::size_t>(rank) * size_;
  }
  /// The host may read what has been received.
  Ticks exchange(RankGroup& group, Ticks ready) {
    std::vector<std::span<const std::byte>> out;
    std::vector<std::span<std::byte>> in;
    for (int r = 0; r < group.size(); ++r) {
      const std::size_t first = static_cast<std::size_t>(r) * size_;
      out.push_back(sent_.bytes().subspan(first, size_));
      in.push_back(received_.bytes().subspan(first, size_));
    }
    ready = group.all_to_all(out, in, ready);
    rank_.wait();
    return ready;
  }

 private:
  Buffer made(OperatorPass& pass, int ranks) const {
    const auto bytes = static_cast<std::int64_t>(size_) * ranks;
    return {pass.rank.memory, MemoryClass::kCommunication, Bytes(bytes)};
  }
  RankContext& rank_;
  std::size_t size_;
  Buffer sent_, received_;
};

std::size_t bytes_of_rank(std::span<const HeadExchange> tensors) {
  std::size_t sum = 0;
  for (const HeadExchange& t : tensors)
    sum += static_cast<std::size_t>(t.tokens.rows) * row_bytes_of(t.heads);
  return sum;
}

/// Every tensor's heads go to the ranks that work on them.
Ticks tokens_to_heads(OperatorPass& pass, std::span<const HeadExchange> tensors, RankGroup& group,
                      Ticks ready) {
  pass.rank.wait();  // parcels are packed and unpacked by the host
  Parcels parcels(pass, group.size(), bytes_of_rank(tensors));
  for (int r = 0; r < group.size(); ++r) {
    std::byte* next = parcels.sent(r);
    for (const HeadExchange& t : tensors) {
      const std::size_t share = row_bytes_of(t.heads);
      for (std::int64_t row = 0; row < t.tokens.rows; ++row, next += share)
        std::memcpy(next, row_at(t.tokens, row) + static_cast<std::size_t>(r) * share, share);
    }
  }
  ready = parcels.exchange(group, ready);
  for (int r = 0; r < group.size(); ++r) {
    const std::byte* next = parcels.received(r);
    for (const HeadExchange& t : tensors) {
      const std::size_t share = row_bytes_of(t.heads);
      for_each_row_of(pass, r, [&](std::int64_t, std::int64_t row) {
        std::memcpy(row_at(t.heads, row), next, share);
        next += share;
      });
    }
  }
  return ready;
}

/// And back.
Ticks heads_to_tokens(OperatorPass& pass, std::span<const HeadExchange> tensors, RankGroup& group,
                      Ticks ready) {
  pass.rank.wait();
  Parcels parcels(pass, group.size(), bytes_of_rank(tensors));
  for (int r = 0; r < group.size(); ++r) {
    std::byte* next = parcels.sent(r);
    for (const HeadExchange& t : tensors)
      for_each_row_of(pass, r, [&](std::int64_t, std::int64_t row) {
        std::memcpy(next, row_at(t.heads, row), row_bytes_of(t.heads));
        next += row_bytes_of(t.heads);
      });
  }
  ready = parcels.exchange(group, ready);
  for (int r = 0; r < group.size(); ++r) {
    const std::byte* next = parcels.received(r);
    for (const HeadExchange& t : tensors) {
      const std::size_t share = row_bytes_of(t.heads);
      for (std::int64_t row = 0; row < t.tokens.rows; ++row, next += share)
        std::memcpy(row_at(t.tokens, row) + static_cast<std::size_t>(r) * share, next, share);
    }
  }
  return ready;
}

HeadExchange to_heads(OperatorPass& pass, TensorId tensor, const Matrix& tokens, Form form,
                      MemoryClass what) {
  const int ranks = pass.rank.strategy.degrees.context;
  return {tokens, pass.make(tensor, form, tokens.rows * ranks, tokens.columns / ranks,
                            pass.rank.dtype, what)};
}

/// Queries, keys and values stay cut by heads until the backward pass: nobody else reads them.
/// Those that selective recomputation exchanges again stay as they were.
Ticks queries_to_heads(OperatorPass& pass, RankGroup& group, Ticks ready) {
  std::vector<HeadExchange> tensors;
  for (const TensorId tensor : pass.op().inputs)
    tensors.push_back(
        to_heads(pass, tensor, pass.value(tensor), Form::kHeadCutValue, MemoryClass::kActivations));
  ready = tokens_to_heads(pass, tensors, group, ready);
  if (!exchanges_heads_again(pass.rank.strategy))
    for (const TensorId tensor : pass.op().inputs) pass.state.erase(tensor, Form::kValue);
  return ready;
}

Ticks outputs_to_tokens(OperatorPass& pass, RankGroup& group, Ticks ready) {
  OwnedMatrix heads = std::move(*pass.state.find(pass.output(), Form::kHeadCutValue));
  pass.state.erase(pass.output(), Form::kHeadCutValue);
  const HeadExchange out{pass.make_value(pass.output(), heads.rows() / group.size()), heads.view()};
  return heads_to_tokens(pass, std::span(&out, 1), group, ready);
}

/// The output's gradient, and with it delta, which needs output and gradient of all heads: both
/// are here before the exchange alone.
Ticks gradients_to_heads(OperatorPass& pass, const Attention& attention, RankGroup& group,
                         Ticks ready) {
  const Matrix dout = pass.gradient(pass.output());
  const std::int64_t heads = local_heads(pass, attention).heads, all = heads * group.size();
  const std::int64_t sequences = pass.rank.shard.sequences, local = pass.rank.tokens.sequence;
  OwnedMatrix delta =  // [B, A, T / n]: the rows of a head and sequence side by side
      pass.rank.matrix(MemoryClass::kWorking, sequences * all, local, Dtype::kFp32);
  pass.rank.run(pass.rank.kernels.attention_delta, {.shape = {.sequences = sequences,
                                                              .heads = all,
                                                              .key_value_heads = all,
                                                              .queries = local,
                                                              .keys = local,
                                                              .key_size = attention.key_size,
                                                              .value_size = attention.value_size},
                                                    .out = pass.value(pass.output()),
                                                    .dout = dout,
                                                    .delta = delta.floats()});
  const HeadExchange tensor =
      to_heads(pass, pass.output(), dout, Form::kHeadCutGradient, MemoryClass::kCommunication);
  ready = tokens_to_heads(pass, std::span(&tensor, 1), group, ready);

  const std::int64_t rows_of_rank = sequences * heads;
  const auto row_bytes = static_cast<std::size_t>(local) * sizeof(float);
  Parcels deltas(pass, group.size(), static_cast<std::size_t>(rows_of_rank) * row_bytes);
  for (int r = 0; r < group.size(); ++r)
    for (std::int64_t b = 0; b < sequences; ++b)
      std::memcpy(deltas.sent(r) + static_cast<std::size_t>(b * heads) * row_bytes,
                  rows_of(delta.view(), b * all + r * heads, heads).data,
                  static_cast<std::size_t>(heads) * row_bytes);
  ready = deltas.exchange(group, ready);
  pass.state.attention_delta = pass.rank.numbers(delta.rows() * local);
  for (int r = 0; r < group.size(); ++r)
    for (std::int64_t row = 0; row < rows_of_rank; ++row)
      std::memcpy(pass.state.attention_delta.floats().data() +
                      row * pass.rank.shard.sequence_length + r * local,
                  deltas.received(r) + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  return ready;
}

Ticks gradients_to_tokens(OperatorPass& pass, RankGroup& group, Ticks ready) {
  std::vector<HeadExchange> tensors;
  for (const TensorId tensor : pass.op().inputs) {
    const Matrix heads = pass.at(tensor, Form::kHeadCutGradient);
    tensors.push_back(
        {pass.make(tensor, Form::kGradient, heads.rows / group.size(), heads.columns * group.size(),
                   pass.rank.dtype, MemoryClass::kWorking),
         heads});
  }
  ready = heads_to_tokens(pass, tensors, group, ready);
  for (const TensorId tensor : pass.op().inputs) {
    pass.state.erase(tensor, Form::kHeadCutGradient);
    pass.state.erase(tensor, Form::kHeadCutValue);
  }
  pass.state.erase(pass.output(), Form::kHeadCutGradient);
  return ready;
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
      // Behind the backward kernels the gradients of the queries are there.
      return !forward && pass.state.find(pass.input(), Form::kGradient) != nullptr
                 ? finish_ring(pass, group, ready)
                 : start_ring(pass, group, ready);
    default:
      break;
  }
  MW_CHECK(false);
}

}  // namespace meshwright
