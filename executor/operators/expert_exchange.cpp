// Dispatch of token rows to the ranks of their experts and back. Expert ranks exchange rows; with
// expert-tensor parallelism the ranks of a group all-gather their rows before the experts and
// reduce-scatter the results after them.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/check.hpp"
#include "executor/operators/expert_rows.hpp"
#include "executor/operators/sequence_pieces.hpp"

namespace meshwright {

std::vector<std::int64_t> offsets_of(std::span<const std::int32_t> counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

// ---- limits and rounding ----

namespace {

/// Groups of tokens to which the expert capacity applies separately: one per rank, or several if a
/// rank follows the rules of a plan with more ranks (RoutingGroups).
struct CapacityGroups {
  std::vector<int> of_token;
  int count = 1;
  std::int64_t rows_per_expert = 0;  ///< per group
};

CapacityGroups capacity_groups(const OperatorPass& pass, std::int64_t tokens, int experts,
                               std::int64_t experts_per_token) {
  const RoutingGroups& like = pass.options.routing;
  CapacityGroups groups;
  groups.of_token.assign(static_cast<std::size_t>(tokens), 0);
  ShardShape shard = pass.sharding.shard;
  if (like.context > 0 || like.tensor > 0) {
    Strategy cut = pass.sharding.strategy;
    MW_CHECK(cut.degrees.context == 1 && cut.degrees.tensor == 1);
    cut.degrees.context = std::max(like.context, 1);
    cut.degrees.tensor = std::max(like.tensor, 1);
    shard.degrees = cut.degrees;
    groups.count = cut.degrees.context * cut.degrees.tensor;
    const std::int64_t local = cut.sequence_length / cut.degrees.context;
    for (int c = 0; c < cut.degrees.context; ++c)
      for (const SequencePiece& piece : sequence_pieces(cut, c))
        for (std::int64_t b = 0; b < shard.sequences; ++b)
          for (std::int64_t t = 0; t < piece.length; ++t) {
            const std::int64_t row = b * local + piece.first_row + t;  // on the context rank
            const Block block = block_of(shard.sequences * local, cut.degrees.tensor, 0);
            groups.of_token[static_cast<std::size_t>(b * cut.sequence_length +
                                                     piece.first_position + t)] =
                c * cut.degrees.tensor + static_cast<int>(row / block.size());
          }
  }
  groups.rows_per_expert =
      routed_rows(shard, {static_cast<int>(experts_per_token), experts}, /*busiest=*/false) /
      experts;
  return groups;
}

}  // namespace

void fill_to_capacity(const OperatorPass& pass, std::span<const std::int32_t> experts,
                      std::int64_t experts_per_token, Routing& routing) {
  const std::size_t expert_count = routing.counts.size();
  const CapacityGroups groups = capacity_groups(pass, std::ssize(experts) / experts_per_token,
                                                static_cast<int>(expert_count), experts_per_token);
  const std::int64_t of_expert = groups.count * groups.rows_per_expert;
  routing.counts.assign(expert_count, static_cast<std::int32_t>(of_expert));
  routing.row_of_slot.assign(experts.size(), -1);
  routing.slot_of_row.assign(expert_count * static_cast<std::size_t>(of_expert), -1);
  std::vector<std::int64_t> taken(expert_count * static_cast<std::size_t>(groups.count), 0);
  for (std::size_t slot = 0; slot < experts.size(); ++slot) {
    const std::int64_t expert = experts[slot];
    const std::int64_t group = groups.of_token[slot / static_cast<std::size_t>(experts_per_token)];
    std::int64_t& used = taken[static_cast<std::size_t>(expert * groups.count + group)];
    if (used == groups.rows_per_expert) continue;
    const std::int64_t row = expert * of_expert + group * groups.rows_per_expert + used++;
    routing.row_of_slot[slot] = static_cast<std::int32_t>(row);
    routing.slot_of_row[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(slot);
  }
}

void round_outgoing(OperatorPass& pass, const Matrix& rows) {
  if (pass.sharding.shard.routing.fp8_dispatch)
    pass.rank.run(pass.rank.kernels.round_to_float8, {.x = rows, .y = rows});
}

// ---- over expert ranks ----

namespace {

std::vector<std::int64_t> rows_per_rank(std::span<const std::int32_t> counts, int ranks) {
  const std::size_t local = counts.size() / static_cast<std::size_t>(ranks);
  std::vector<std::int64_t> rows;
  for (std::size_t first = 0; first < counts.size(); first += local)
    rows.push_back(std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(first),
                                   counts.begin() + static_cast<std::ptrdiff_t>(first + local),
                                   std::int64_t{0}));
  return rows;
}

template <class Byte>
std::vector<std::span<Byte>> cut_rows(Byte* data, std::span<const std::int64_t> rows,
                                      std::size_t row_bytes) {
  std::vector<std::span<Byte>> spans;
  for (const std::int64_t count : rows) {
    const std::size_t size = static_cast<std::size_t>(count) * row_bytes;
    spans.emplace_back(data, size);
    data += size;
  }
  return spans;
}

/// A routed tensor or gradient to exchange.
struct RoutedRows {
  TensorId tensor;
  Form form;
};

OwnedMatrix traveling_rows(OperatorPass& pass, std::size_t rows, const ConstMatrix& like) {
  return pass.rank.matrix(MemoryClass::kCommunication, static_cast<std::int64_t>(rows),
                          like.columns, like.dtype);
}
/// Makes the tensor from the rows that arrived: row i becomes row place[i].
void place_rows(OperatorPass& pass, const RoutedRows& rows, std::span<const std::int32_t> place,
                const ConstMatrix& arrived) {
  std::vector<std::int32_t> source(place.size());
  for (std::size_t i = 0; i < place.size(); ++i)
    source[static_cast<std::size_t>(place[i])] = static_cast<std::int32_t>(i);
  const Matrix placed =
      pass.make(rows.tensor, rows.form, std::ssize(place), arrived.columns, arrived.dtype);
  pass.rank.run(pass.rank.kernels.gather_rows, {.x = arrived, .index = source, .y = placed});
}
/// The inverse of place_rows().
OwnedMatrix fetch_rows(OperatorPass& pass, std::span<const std::int32_t> place,
                       const ConstMatrix& from) {
  OwnedMatrix leaving = traveling_rows(pass, place.size(), from);
  pass.rank.run(pass.rank.kernels.gather_rows, {.x = from, .index = place, .y = leaving.view()});
  return leaving;
}

/// From counts [sender][local expert]: the position after sorting by expert of each row, given in
/// sender order. Sets `offsets` to the first row of each expert.
std::vector<std::int32_t> places_by_expert(std::span<const std::int32_t> counts, std::size_t local,
                                           std::vector<std::int64_t>& offsets) {
  std::vector<std::int32_t> per_expert(local, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) per_expert[i % local] += counts[i];
  offsets = offsets_of(per_expert);
  std::vector<std::int64_t> next(offsets.begin(), offsets.end() - 1);
  std::vector<std::int32_t> places;
  for (std::size_t i = 0; i < counts.size(); ++i)
    for (std::int32_t row = 0; row < counts[i]; ++row)
      places.push_back(static_cast<std::int32_t>(next[i % local]++));
  return places;
}

/// Exchanges the number of rows per expert and computes the positions of the rows to be received.
Ticks agree_on_rows(Routing& routing, RankGroup& group, Ticks ready) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const std::size_t local = routing.counts.size() / ranks;
  std::vector<std::int32_t> arriving(routing.counts.size());
  const std::vector<std::int64_t> each(ranks, static_cast<std::int64_t>(local));
  const auto sent = cut_rows(reinterpret_cast<const std::byte*>(routing.counts.data()),  // NOLINT
                             each, sizeof(std::int32_t));
  const auto received = cut_rows(reinterpret_cast<std::byte*>(arriving.data()),  // NOLINT
                                 each, sizeof(std::int32_t));
  ready = group.all_to_all(sent, received, ready);
  routing.received_from = rows_per_rank(arriving, group.size());
  routing.place_of_arrival = places_by_expert(arriving, local, routing.offsets);
  return ready;
}

Ticks reach_experts(OperatorPass& pass, const RoutedRows& rows, RankGroup& group, Ticks ready) {
  Routing& routing = routing_of(pass, pass.input(1));
  if (rows.form == Form::kValue) ready = agree_on_rows(routing, group, ready);
  OwnedMatrix home = std::move(*pass.state.find(rows.tensor, rows.form));
  const ConstMatrix from = home.view();
  const std::size_t row_bytes = row_bytes_of(from);
  OwnedMatrix arrived = traveling_rows(pass, routing.place_of_arrival.size(), from);
  const std::vector<std::int64_t> sent_rows = rows_per_rank(routing.counts, group.size());
  const auto sent = cut_rows(static_cast<const std::byte*>(from.data), sent_rows, row_bytes);
  const auto received = cut_rows(arrived.bytes().data(), routing.received_from, row_bytes);
  ready = group.all_to_all(sent, received, ready);
  place_rows(pass, rows, routing.place_of_arrival, arrived.view());
  return ready;
}

Ticks leave_experts(OperatorPass& pass, const RoutedRows& rows, RankGroup& group, Ticks ready) {
  const Routing& routing = routing_of(pass, pass.input(1));
  OwnedMatrix sorted = std::move(*pass.state.find(rows.tensor, rows.form));
  const ConstMatrix from = sorted.view();
  const std::size_t row_bytes = row_bytes_of(from);
  OwnedMatrix leaving = fetch_rows(pass, routing.place_of_arrival, from);
  const Matrix home =
      pass.make(rows.tensor, rows.form, std::ssize(routing.slot_of_row), from.columns, from.dtype);
  const auto sent =
      cut_rows<const std::byte>(leaving.bytes().data(), routing.received_from, row_bytes);
  const auto received = cut_rows(static_cast<std::byte*>(home.data),
                                 rows_per_rank(routing.counts, group.size()), row_bytes);
  return group.all_to_all(sent, received, ready);
}

// ---- over expert-tensor ranks ----

/// Exchanges the number of rows per rank and expert within the group, and computes their positions.
Ticks agree_on_group(Routing& routing, RankGroup& group, Ticks ready) {
  const std::size_t local = routing.offsets.size() - 1;
  std::vector<std::int32_t> counts(local * static_cast<std::size_t>(group.size()));
  for (std::size_t e = 0; e < local; ++e)
    counts[static_cast<std::size_t>(group.index()) * local + e] =
        static_cast<std::int32_t>(routing.offsets[e + 1] - routing.offsets[e]);
  ready = group.all_gather(std::as_writable_bytes(std::span(counts)),
                           static_cast<std::int64_t>(local * sizeof(std::int32_t)), ready);
  routing.rows_of_member = rows_per_rank(counts, group.size());
  routing.place_in_group = places_by_expert(counts, local, routing.offsets);
  return ready;
}

Ticks gather_group(OperatorPass& pass, const RoutedRows& rows, RankGroup& group, Ticks ready) {
  Routing& routing = routing_of(pass, pass.input(1));
  if (rows.form == Form::kValue) ready = agree_on_group(routing, group, ready);
  OwnedMatrix mine = std::move(*pass.state.find(rows.tensor, rows.form));
  const ConstMatrix from = mine.view();
  const std::size_t row_bytes = row_bytes_of(from);
  OwnedMatrix arrived = traveling_rows(pass, routing.place_in_group.size(), from);
  const std::vector<std::span<const std::byte>> sent(
      static_cast<std::size_t>(group.size()),
      {static_cast<const std::byte*>(from.data), static_cast<std::size_t>(from.rows) * row_bytes});
  ready = group.all_to_all(
      sent, cut_rows(arrived.bytes().data(), routing.rows_of_member, row_bytes), ready);
  place_rows(pass, rows, routing.place_in_group, arrived.view());
  return ready;
}

/// Reduce-scatter of partial results: every rank contributes to all rows of the group and receives
/// the sums of its own rows, added in rank order.
Ticks sum_group(OperatorPass& pass, const RoutedRows& rows, RankGroup& group, Ticks ready) {
  const Routing& routing = routing_of(pass, pass.input(1));
  OwnedMatrix summands = std::move(*pass.state.find(rows.tensor, rows.form));
  const ConstMatrix from = summands.view();
  const std::size_t row_bytes = row_bytes_of(from);
  OwnedMatrix leaving = fetch_rows(pass, routing.place_in_group, from);
  const std::int64_t own = routing.rows_of_member[static_cast<std::size_t>(group.index())];
  const std::vector<std::int64_t> each(static_cast<std::size_t>(group.size()), own);
  OwnedMatrix arrived =
      pass.rank.matrix(MemoryClass::kCommunication, own * group.size(), from.columns, from.dtype);
  ready = group.all_to_all(
      cut_rows<const std::byte>(leaving.bytes().data(), routing.rows_of_member, row_bytes),
      cut_rows(arrived.bytes().data(), each, row_bytes), ready);
  OwnedMatrix sum = pass.rank.matrix(MemoryClass::kWorking, own, from.columns, Dtype::kFp32);
  pass.rank.run(pass.rank.kernels.fill, {.y = flat(sum.view()), .value = 0});
  for (int member = 0; member < group.size(); ++member)
    pass.rank.run(
        pass.rank.kernels.add,
        {.a = sum.view(), .b = rows_of(arrived.view(), member * own, own), .y = sum.view()});
  const Matrix to = pass.make(rows.tensor, rows.form, own, from.columns, from.dtype);
  pass.rank.run(pass.rank.kernels.cast, {.x = flat(sum.view()), .y = flat(to)});
  return ready;
}

}  // namespace

/// Rows are sent to the experts for dispatch and for the gradient of combine, and back for combine
/// and for the gradient of dispatch.
Ticks over_expert_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                        Ticks ready) {
  const Form form = collective.phase == Phase::kForward ? Form::kValue : Form::kGradient;
  const bool dispatches = std::holds_alternative<TokenDispatch>(pass.op().shape);
  const RoutedRows rows{dispatches ? pass.output() : pass.input(0), form};
  const bool goes_out = dispatches == (form == Form::kValue);
  switch (collective.kind) {
    case CollectiveKind::kAllToAll:
      return goes_out ? reach_experts(pass, rows, group, ready)
                      : leave_experts(pass, rows, group, ready);
    case CollectiveKind::kAllGather:
      return gather_group(pass, rows, group, ready);
    case CollectiveKind::kReduceScatter:
      return sum_group(pass, rows, group, ready);
    default:
      break;
  }
  MW_CHECK(false);
}

/// Without sequence parallelism every tensor rank needs the results for the others' tokens.
Ticks gather_dispatched(OperatorPass& pass, RankGroup& group, Ticks ready) {
  if (std::holds_alternative<TokenCombine>(pass.op().shape)) {
    const Matrix y = pass.value(pass.output());
    return group.all_gather(
        {static_cast<std::byte*>(y.data), static_cast<std::size_t>(y.rows) * row_bytes_of(y)},
        static_cast<std::int64_t>(row_bytes_of(y)), ready);
  }
  OwnedMatrix sum = std::move(pass.state.dispatched_gradient);
  ready = group.all_gather(sum.bytes(), static_cast<std::int64_t>(row_bytes_of(sum.view())), ready);
  pass.add_gradient(pass.input(0), sum.view());
  // Every rank runs the router for all tokens and needs the gradients of all routing weights.
  Routing& routing = routing_of(pass, pass.input(1));
  const auto copies = static_cast<std::int64_t>(routing.weight_gradients.size()) / sum.rows();
  return group.all_gather(std::as_writable_bytes(std::span(routing.weight_gradients)),
                          copies * static_cast<std::int64_t>(sizeof(float)), ready);
}

}  // namespace meshwright
