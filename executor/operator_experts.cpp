// Mixture of experts: the router, rows on their way to the experts and home, grouped products.
//
// At home the rows of a rank stand sorted by expert, in the order of their tokens; with the experts
// they stand sorted by local expert, then by the rank that they came from.
#include <cstring>
#include <numeric>

#include "core/check.hpp"
#include "executor/operator_pass.hpp"

namespace meshwright {
namespace {

GateShape gate_shape(const OperatorPass& pass, const Router& router, std::int64_t tokens) {
  // A correction of scores goes with sigmoid scores (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
  const bool sigmoid = pass.op().parameters.size() > 1 &&
                       pass.rank.model.tensors[pass.op().parameters.back().index()].name.ends_with(
                           "score_correction");
  return {.score = sigmoid ? GateScore::kSigmoid : GateScore::kSoftmax,
          .tokens = tokens,
          .experts = router.experts,
          .experts_per_token = router.experts_per_token};
}

Routing& routing_of(OperatorPass& pass, TensorId scores) {
  return pass.state.routing[scores.value];
}

/// What was dispatched to the experts among which the operator is.
Routing& routing_of_layer(OperatorPass& pass) {
  for (std::size_t i = pass.id.index(); i-- > 0;)
    if (const Operator& o = pass.rank.model.operators[i];
        std::holds_alternative<TokenDispatch>(o.shape))
      return routing_of(pass, o.inputs[1]);
  MW_CHECK(false);
}

/// Tokens whose rows this rank dispatches: without sequence parallelism all tensor ranks have all
/// tokens, and each takes its block.
Block dispatched_rows(const OperatorPass& pass, const ConstMatrix& x) {
  if (!pass.is_cut() || pass.rank.strategy.sequence_parallel) return {0, x.rows};
  return pass.own_rows();
}

template <class T>
std::span<T> slots_of(std::vector<T>& per_slot, const Block& tokens, std::int64_t copies) {
  return std::span(per_slot).subspan(static_cast<std::size_t>(tokens.begin * copies),
                                     static_cast<std::size_t>(tokens.size() * copies));
}

std::vector<std::int64_t> offsets_of(std::span<const std::int32_t> counts) {
  std::vector<std::int64_t> offsets(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

}  // namespace

// ---- router ----

void forward(OperatorPass& pass, const Router& router) {
  const Matrix x = pass.value(pass.input());
  const Matrix scores = pass.make_value(pass.output(), x.rows);
  Routing& routing = routing_of(pass, pass.output());
  const auto slots = static_cast<std::size_t>(x.rows * router.experts_per_token);
  routing.experts.assign(slots, 0);
  routing.weights.assign(slots, 0.0F);
  pass.rank.run(pass.rank.kernels.gemm, {.a = x,
                                         .b = pass.parameters.weight(pass.op().parameters.front()),
                                         .transpose_b = true,
                                         .c = scores});
  const std::span<float> all(static_cast<float*>(scores.data),
                             static_cast<std::size_t>(scores.rows * scores.columns));
  pass.rank.run(pass.rank.kernels.gate_forward, {.shape = gate_shape(pass, router, x.rows),
                                                 .logits = all,
                                                 .scores = all,
                                                 .experts = routing.experts,
                                                 .weights = routing.weights});
}

void backward_input(OperatorPass& pass, const Router& router) {
  const Matrix x = pass.value(pass.input()), scores = pass.value(pass.output());
  Routing& routing = routing_of(pass, pass.output());
  const Matrix logits = pass.make(pass.output(), Form::kGradient, x.rows, router.experts,
                                  Dtype::kFp32, MemoryClass::kWorking);
  const auto count = static_cast<std::size_t>(scores.rows * scores.columns);
  pass.rank.run(pass.rank.kernels.gate_backward,
                {.shape = gate_shape(pass, router, x.rows),
                 .scores = {static_cast<const float*>(scores.data), count},
                 .experts = routing.experts,
                 .dweights = routing.weight_gradients,
                 .dlogits = {static_cast<float*>(logits.data), count}});
  pass.into_gradient(pass.input(), Form::kGradient, x, [&](const Matrix& dx, bool adds) {
    pass.rank.run(pass.rank.kernels.gemm,
                  {.a = logits,
                   .b = pass.parameters.weight(pass.op().parameters.front()),
                   .c = dx,
                   .beta = adds ? 1.0F : 0.0F});
  });
}

void backward_weight(OperatorPass& pass, const Router&) {
  pass.rank.run(pass.rank.kernels.gemm,
                {.a = pass.gradient(pass.output()),
                 .transpose_a = true,
                 .b = pass.value(pass.input()),
                 .c = pass.parameters.gradient(pass.op().parameters.front()),
                 .beta = 1});
}

// ---- to the experts ----

void forward(OperatorPass& pass, const TokenDispatch& dispatch) {
  const Matrix x = pass.value(pass.input(0));
  const Block own = dispatched_rows(pass, x);
  Routing& routing = routing_of(pass, pass.input(1));
  const auto slots = static_cast<std::size_t>(own.size() * dispatch.experts_per_token);
  routing.slot_of_row.assign(slots, 0);
  routing.row_of_slot.assign(slots, 0);
  routing.counts.assign(static_cast<std::size_t>(pass.value(pass.input(1)).columns), 0);
  pass.rank.run(pass.rank.kernels.sort_by_expert,
                {.experts = slots_of(routing.experts, own, dispatch.experts_per_token),
                 .slot_of_row = routing.slot_of_row,
                 .row_of_slot = routing.row_of_slot,
                 .counts = routing.counts});
  routing.offsets = offsets_of(routing.counts);  // where all experts are here
  const Matrix rows = pass.make_value(pass.output(), static_cast<std::int64_t>(slots));
  pass.rank.run(pass.rank.kernels.gather_rows, {.x = rows_of(x, own.begin, own.size()),
                                                .index = routing.slot_of_row,
                                                .copies = dispatch.experts_per_token,
                                                .y = rows});
}

void backward_input(OperatorPass& pass, const TokenDispatch& dispatch) {
  const Matrix x = pass.value(pass.input(0));
  const Block own = dispatched_rows(pass, x);
  const Routing& routing = routing_of(pass, pass.input(1));
  OwnedMatrix sum = pass.rank.matrix(MemoryClass::kWorking, x.rows, x.columns, pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.combine_rows, {.x = pass.gradient(pass.output()),
                                                 .index = routing.row_of_slot,
                                                 .copies = dispatch.experts_per_token,
                                                 .y = rows_of(sum.view(), own.begin, own.size())});
  if (own.size() == x.rows)
    pass.add_gradient(pass.input(0), sum.view());
  else  // gather_dispatched() goes on
    pass.state.dispatched_gradient = std::move(sum);
}

// ---- experts ----

void forward(OperatorPass& pass, const ExpertLinear& expert) {
  const Matrix x = pass.value(pass.input());
  const std::vector<TensorId>& parameters = pass.op().parameters;
  const Matrix y = pass.make_value(pass.output(), x.rows);
  pass.rank.run(
      pass.rank.kernels.grouped_gemm,
      {.x = x,
       .weights = pass.parameters.weight(parameters[0]),
       .y = y,
       .bias = expert.bias ? ConstMatrix(pass.parameters.weight(parameters[1])) : ConstMatrix{},
       .offsets = routing_of_layer(pass).offsets});
}

void backward_input(OperatorPass& pass, const ExpertLinear&) {
  const Matrix x = pass.value(pass.input());
  pass.into_gradient(pass.input(), Form::kGradient, x, [&](const Matrix& dx, bool adds) {
    MW_CHECK(!adds);  // no other reader
    pass.rank.run(pass.rank.kernels.grouped_gemm,
                  {.x = pass.gradient(pass.output()),
                   .weights = pass.parameters.weight(pass.op().parameters[0]),
                   .transpose_weights = true,
                   .y = dx,
                   .offsets = routing_of_layer(pass).offsets});
  });
}

void backward_weight(OperatorPass& pass, const ExpertLinear& expert) {
  const std::vector<TensorId>& parameters = pass.op().parameters;
  const std::vector<std::int64_t>& offsets = routing_of_layer(pass).offsets;
  const Matrix dy = pass.gradient(pass.output());
  pass.rank.run(pass.rank.kernels.grouped_gemm_weight,
                {.x = pass.value(pass.input()),
                 .dy = dy,
                 .dweights = pass.parameters.gradient(parameters[0]),
                 .offsets = offsets});
  if (expert.bias)
    pass.rank.run(pass.rank.kernels.grouped_bias_gradient,
                  {.dy = dy, .dbias = pass.parameters.gradient(parameters[1]), .offsets = offsets});
}

// ---- home again ----

void forward(OperatorPass& pass, const TokenCombine& combine) {
  const Matrix rows = pass.value(pass.input(0)), scores = pass.value(pass.input(1));
  const Block own = dispatched_rows(pass, scores);
  Routing& routing = routing_of(pass, pass.input(1));
  const Matrix y = pass.make_value(pass.output(), scores.rows);
  pass.rank.run(pass.rank.kernels.combine_rows,
                {.x = rows,
                 .index = routing.row_of_slot,
                 .copies = combine.experts_per_token,
                 .weights = slots_of(routing.weights, own, combine.experts_per_token),
                 .y = rows_of(y, own.begin, own.size())});
}

void backward_input(OperatorPass& pass, const TokenCombine& combine) {
  const Matrix rows = pass.value(pass.input(0)), scores = pass.value(pass.input(1));
  const Block own = dispatched_rows(pass, scores);
  Routing& routing = routing_of(pass, pass.input(1));
  const std::int64_t copies = combine.experts_per_token;
  const Matrix dy = rows_of(pass.gradient(pass.output()), own.begin, own.size());
  routing.weight_gradients.assign(routing.weights.size(), 0.0F);
  pass.rank.run(pass.rank.kernels.combine_weight_gradient,
                {.dy = dy,
                 .x = rows,
                 .index = routing.row_of_slot,
                 .copies = copies,
                 .dweights = slots_of(routing.weight_gradients, own, copies)});
  const Matrix drows = pass.make(pass.input(0), Form::kGradient, rows.rows, rows.columns,
                                 pass.rank.dtype, MemoryClass::kWorking);
  pass.rank.run(pass.rank.kernels.gather_rows, {.x = dy,
                                                .index = routing.slot_of_row,
                                                .copies = copies,
                                                .scales = slots_of(routing.weights, own, copies),
                                                .y = drows});
}

// ---- between the ranks ----

namespace {

/// Ranges of rows that go to, or come from, each expert rank.
struct RowExchange {
  std::vector<std::int64_t> sent, received;  ///< rows, by expert rank
};

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

/// Tells every expert rank how many rows come for each of its experts, and works out where what
/// arrives here belongs.
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
  std::vector<std::int32_t> per_expert(local, 0);
  for (std::size_t i = 0; i < arriving.size(); ++i) per_expert[i % local] += arriving[i];
  routing.offsets = offsets_of(per_expert);
  std::vector<std::int64_t> next(routing.offsets.begin(), routing.offsets.end() - 1);
  routing.place_of_arrival.clear();
  for (std::size_t i = 0; i < arriving.size(); ++i)
    for (std::int32_t row = 0; row < arriving[i]; ++row)
      routing.place_of_arrival.push_back(static_cast<std::int32_t>(next[i % local]++));
  return ready;
}

std::size_t row_bytes_of(const ConstMatrix& m) {
  return static_cast<std::size_t>(m.columns * bytes_per_element(m.dtype));
}

}  // namespace

Ticks reach_experts(OperatorPass& pass, RankGroup& group, Form form, Ticks ready) {
  Routing& routing = routing_of(pass, pass.input(1));
  const bool is_dispatch = form == Form::kValue;
  if (is_dispatch) ready = agree_on_rows(routing, group, ready);
  const TensorId tensor = is_dispatch ? pass.output() : pass.input(0);
  OwnedMatrix home = std::move(*pass.state.find(tensor, form));
  const ConstMatrix from = home.view();
  const std::size_t row_bytes = row_bytes_of(from);
  std::vector<std::byte> arrived(routing.place_of_arrival.size() * row_bytes);
  const std::vector<std::int64_t> sent_rows = rows_per_rank(routing.counts, group.size());
  const auto sent = cut_rows(static_cast<const std::byte*>(from.data), sent_rows, row_bytes);
  const auto received = cut_rows(arrived.data(), routing.received_from, row_bytes);
  ready = group.all_to_all(sent, received, ready);
  const auto rows = static_cast<std::int64_t>(routing.place_of_arrival.size());
  const Matrix sorted = pass.make(tensor, form, rows, from.columns, from.dtype,
                                  is_dispatch ? MemoryClass::kActivations : MemoryClass::kWorking);
  for (std::size_t i = 0; i < routing.place_of_arrival.size(); ++i)
    std::memcpy(static_cast<std::byte*>(sorted.data) +
                    static_cast<std::size_t>(routing.place_of_arrival[i]) * row_bytes,
                arrived.data() + i * row_bytes, row_bytes);
  return ready;
}

Ticks leave_experts(OperatorPass& pass, RankGroup& group, Form form, Ticks ready) {
  const Routing& routing = routing_of(pass, pass.input(1));
  const bool is_combine = form == Form::kValue;
  const TensorId tensor = is_combine ? pass.input(0) : pass.output();
  OwnedMatrix sorted = std::move(*pass.state.find(tensor, form));
  const ConstMatrix from = sorted.view();
  const std::size_t row_bytes = row_bytes_of(from);
  std::vector<std::byte> leaving(routing.place_of_arrival.size() * row_bytes);
  for (std::size_t i = 0; i < routing.place_of_arrival.size(); ++i)
    std::memcpy(leaving.data() + i * row_bytes,
                static_cast<const std::byte*>(from.data) +
                    static_cast<std::size_t>(routing.place_of_arrival[i]) * row_bytes,
                row_bytes);
  const auto rows = static_cast<std::int64_t>(routing.slot_of_row.size());
  const Matrix home = pass.make(tensor, form, rows, from.columns, from.dtype,
                                is_combine ? MemoryClass::kActivations : MemoryClass::kWorking);
  const auto sent =
      cut_rows(static_cast<const std::byte*>(leaving.data()), routing.received_from, row_bytes);
  const auto received = cut_rows(static_cast<std::byte*>(home.data),
                                 rows_per_rank(routing.counts, group.size()), row_bytes);
  return group.all_to_all(sent, received, ready);
}

/// Without sequence parallelism every tensor rank needs what the others' tokens brought.
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
  // The router, which every rank carries out for all tokens, needs the gradients of its weights.
  Routing& routing = routing_of(pass, pass.input(1));
  const auto copies = static_cast<std::int64_t>(routing.weight_gradients.size()) / sum.rows();
  return group.all_gather(std::as_writable_bytes(std::span(routing.weight_gradients)),
                          copies * static_cast<std::int64_t>(sizeof(float)), ready);
}

}  // namespace meshwright
