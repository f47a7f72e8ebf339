// Ring attention (arXiv 2310.01889): keys and values circulate among the context ranks; n - 1 times
// a rank passes the block it has processed on to the next rank. Partial results are merged by their
// log-sum-exps. The gradients of a block follow it one step later, accumulate a contribution on
// every rank and return to its owner with one more hop, done by finish_ring().
//
// In the lowered pass the kernels come after the exchange: start_ring() only synchronizes, messages
// are sent while the blocks are processed.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/check.hpp"
#include "executor/operators/attention_calls.hpp"

namespace meshwright {
namespace {

/// Keys and values of one rank, or their gradients, as one message.
class KeyValueBlock {
 public:
  /// Like this rank's own; the graph names `count` of them as one buffer.
  KeyValueBlock(OperatorPass& pass, int count)
      : keys_(matrix_like(pass, pass.value(pass.input(1)))),
        values_(matrix_like(pass, pass.value(pass.input(2)))) {
    const std::int64_t bytes = std::ssize(keys_.bytes()) + std::ssize(values_.bytes());
    pass.check_temporary({Bytes(count * bytes), MemoryClass::kCommunication});
  }
  Matrix keys() { return keys_.view(); }
  Matrix values() { return values_.view(); }
  std::array<std::span<std::byte>, 2> bytes() { return {keys_.bytes(), values_.bytes()}; }

 private:
  static OwnedMatrix matrix_like(OperatorPass& pass, const Matrix& m) {
    return pass.rank.matrix(MemoryClass::kCommunication, m.rows, m.columns, pass.rank.dtype);
  }
  OwnedMatrix keys_, values_;
};

/// The ring of context ranks, seen by one rank.
class Ring {
 public:
  explicit Ring(OperatorPass& pass)
      : rank_(pass.rank),
        tag_(pass.state.ring_tag),
        size_(pass.sharding.strategy.degrees.context) {}
  int size() const { return size_; }
  /// The rank whose block is here after `step` hops.
  int owner(int step) const { return (rank_.at.context - step + 2 * size_) % size_; }

  void send(KeyValueBlock& block) {
    for (const std::span<std::byte> bytes : block.bytes())
      rank_.communicator.send(neighbor(1), tag_, bytes, {});
  }
  void receive(KeyValueBlock& block) {
    wait(true);
    for (const std::span<std::byte> bytes : block.bytes())
      rank_.communicator.receive(neighbor(size_ - 1), tag_, bytes);
    wait(false);
  }

 private:
  /// Lets other ranks compute meanwhile.
  void wait(bool begins) {
    rank_.progress.is_waiting = begins;
    if (rank_.on_wait) rank_.on_wait(begins);
  }
  RankId neighbor(int distance) const {
    const int index = (rank_.at.context + distance) % size_;
    return rank_.groups.context[static_cast<std::size_t>(index)];
  }
  RankContext& rank_;
  MessageTag tag_;
  int size_;
};

KeyValueBlock own_block(OperatorPass& pass, int count) {
  KeyValueBlock block(pass, count);
  copy(pass, pass.value(pass.input(1)), block.keys());
  copy(pass, pass.value(pass.input(2)), block.values());
  return block;
}

/// Calls visit(queries, keys) for all of this rank's queries that attend to keys of `owner`.
template <class Visit>
void for_each_meeting(OperatorPass& pass, const Attention& attention, int owner, Visit visit) {
  const std::vector<SequencePiece> pieces = sequence_pieces(pass.sharding.strategy, owner);
  for (const QueryRun& queries : query_runs(pass))
    for (const SequencePiece& piece : pieces) {
      const KeyRun keys{queries.first_sequence * pass.sharding.tokens.sequence + piece.first_row,
                        piece.length, piece.first_position, piece.length};
      if (meet(attention, queries, keys)) visit(queries, keys);
    }
}

/// Results accumulated over blocks, in fp32.
struct RunningResult {
  OwnedMatrix out;        ///< [rows, A Dv]
  std::span<float> sums;  ///< log-sum-exps
};

void attend_block(OperatorPass& pass, const Attention& attention, KeyValueBlock& block, int owner,
                  RunningResult& running) {
  const Matrix q = pass.value(pass.input(0));
  const std::int64_t heads = local_heads(pass, attention).heads;
  for_each_meeting(pass, attention, owner, [&](const QueryRun& queries, const KeyRun& keys) {
    const AttentionShape shape = call_shape(pass, attention, queries, keys);
    OwnedMatrix part = pass.temporary(MemoryClass::kWorking, queries.rows,
                                      heads * attention.value_size, Dtype::kFp32);
    OwnedMatrix part_sums = pass.rank.numbers(queries.rows * heads);
    pass.rank.run(pass.rank.kernels.attention_forward,
                  {.shape = shape,
                   .q = rows_of(q, queries.first_row, queries.rows),
                   .k = rows_of(block.keys(), keys.first_row, keys.rows),
                   .v = rows_of(block.values(), keys.first_row, keys.rows),
                   .out = part.view(),
                   .log_sum_exp = part_sums.floats()});
    pass.rank.run(pass.rank.kernels.attention_merge,
                  {.shape = shape,
                   .out = rows_of(running.out.view(), queries.first_row, queries.rows),
                   .log_sum_exp = statistics_of(running.sums, queries, heads),
                   .block = part.view(),
                   .block_log_sum_exp = part_sums.floats()});
  });
}

}  // namespace

void ring_forward(OperatorPass& pass, const Attention& attention) {
  const LocalHeads heads = local_heads(pass, attention);
  const std::int64_t rows = pass.value(pass.input(0)).rows;
  const Matrix sums = pass.make_softmax_sums(rows * heads.heads);
  RunningResult running{
      pass.temporary(MemoryClass::kWorking, rows, heads.heads * attention.value_size, Dtype::kFp32),
      floats_of(sums)};
  clear(pass, running.out.view());
  pass.rank.run(pass.rank.kernels.fill, {.y = flat(sums), .value = -INFINITY});

  Ring ring(pass);
  constexpr int kBlocks = 2;
  KeyValueBlock here = own_block(pass, kBlocks), next(pass, kBlocks);
  for (int step = 0; step < ring.size(); ++step) {
    const bool travels = step + 1 < ring.size();
    if (travels) ring.send(here);
    attend_block(pass, attention, here, ring.owner(step), running);
    if (!travels) break;
    ring.receive(next);
    std::swap(here, next);
  }
  for (const QueryRun& queries : query_runs(pass))
    add_sinks(pass, call_shape(pass, attention, queries, {}),
              rows_of(running.out.view(), queries.first_row, queries.rows),
              statistics_of(running.sums, queries, heads.heads));
  copy(pass, running.out.view(), pass.make_value(pass.output(), rows));
}

namespace {

/// The deltas of all calls; also computes the gradients of the sinks.
OwnedMatrix deltas_of(OperatorPass& pass, const Attention& attention, std::span<float> sums) {
  const std::int64_t heads = local_heads(pass, attention).heads;
  const Matrix out = pass.value(pass.output()), dout = pass.gradient(pass.output());
  OwnedMatrix deltas = pass.rank.numbers(std::ssize(sums));
  for (const QueryRun& queries : query_runs(pass)) {
    const AttentionShape shape = call_shape(pass, attention, queries, {});
    const std::span<float> mine = statistics_of(deltas.floats(), queries, heads);
    pass.rank.run(pass.rank.kernels.attention_delta,
                  {.shape = shape,
                   .out = rows_of(out, queries.first_row, queries.rows),
                   .dout = rows_of(dout, queries.first_row, queries.rows),
                   .delta = mine});
    add_sink_gradients(pass, shape, statistics_of(sums, queries, heads), mine);
  }
  return deltas;
}

struct RingGradients {
  OwnedMatrix dq;         ///< fp32
  std::span<float> sums;  ///< log-sum-exps of whole rows
  OwnedMatrix delta;
};

void differentiate_block(OperatorPass& pass, const Attention& attention, KeyValueBlock& block,
                         KeyValueBlock& gradients, int owner, RingGradients& own) {
  const Matrix q = pass.value(pass.input(0)), dout = pass.gradient(pass.output());
  const std::int64_t heads = local_heads(pass, attention).heads;
  for_each_meeting(pass, attention, owner, [&](const QueryRun& queries, const KeyRun& keys) {
    pass.rank.run(pass.rank.kernels.attention_backward,
                  {.shape = call_shape(pass, attention, queries, keys),
                   .q = rows_of(q, queries.first_row, queries.rows),
                   .k = rows_of(block.keys(), keys.first_row, keys.rows),
                   .v = rows_of(block.values(), keys.first_row, keys.rows),
                   .dout = rows_of(dout, queries.first_row, queries.rows),
                   .log_sum_exp = statistics_of(own.sums, queries, heads),
                   .delta = statistics_of(own.delta.floats(), queries, heads),
                   .dq = rows_of(own.dq.view(), queries.first_row, queries.rows),
                   .dk = rows_of(gradients.keys(), keys.first_row, keys.rows),
                   .dv = rows_of(gradients.values(), keys.first_row, keys.rows),
                   .accumulate = true});
  });
}

}  // namespace

void ring_backward(OperatorPass& pass, const Attention& attention) {
  const Matrix q = pass.value(pass.input(0));
  const std::span<float> sums = pass.state.statistics.at(pass.id.value).floats();
  RingGradients own{pass.temporary(MemoryClass::kWorking, q.rows, q.columns, Dtype::kFp32), sums,
                    deltas_of(pass, attention, sums)};
  clear(pass, own.dq.view());

  Ring ring(pass);
  constexpr int kBlocks = 3;
  KeyValueBlock here = own_block(pass, kBlocks), next(pass, kBlocks), gradients(pass, kBlocks);
  clear(pass, gradients.keys());
  clear(pass, gradients.values());
  for (int step = 0; step < ring.size(); ++step) {
    const bool travels = step + 1 < ring.size();
    if (travels) ring.send(here);
    if (step > 0) ring.receive(gradients);
    differentiate_block(pass, attention, here, gradients, ring.owner(step), own);
    if (!travels) break;
    ring.receive(next);
    ring.send(gradients);
    std::swap(here, next);
  }
  MW_CHECK(pass.state.find(pass.input(0), Form::kGradient) == nullptr);  // no other consumer
  copy(pass, own.dq.view(),
       pass.make(pass.input(0), Form::kGradient, q.rows, q.columns, pass.rank.dtype));
  ring.send(gradients);  // received by finish_ring()
}

Ticks start_ring(OperatorPass& pass, RankGroup& group, Ticks ready) {
  pass.state.ring_tag = group.tag();
  return group.synchronize(ready);
}

Ticks finish_ring(OperatorPass& pass, RankGroup& group, Ticks ready) {
  KeyValueBlock gradients(pass, /*count=*/1);
  Ring(pass).receive(gradients);
  pass.add_gradient(pass.input(1), gradients.keys());
  pass.add_gradient(pass.input(2), gradients.values());
  return group.synchronize(ready);
}

}  // namespace meshwright
