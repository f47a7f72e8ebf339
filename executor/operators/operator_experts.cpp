// Mixture of experts: router, dispatch, grouped products and combine. Communication between the
// ranks is in expert_exchange.cpp.
#include <numeric>

#include "core/base/check.hpp"
#include "executor/operators/expert_rows.hpp"

namespace meshwright {
namespace {

/// The routing of the expert layer that the operator belongs to.
Routing& routing_of_layer(OperatorPass& pass) {
  for (std::size_t i = pass.id.index(); i-- > 0;)
    if (const Operator& o = pass.rank.model.operators[i];
        std::holds_alternative<TokenDispatch>(o.shape))
      return routing_of(pass, o.inputs[1]);
  MW_CHECK(false);
}

/// The tokens that this rank dispatches: without sequence parallelism all tensor ranks hold all
/// tokens, and each dispatches its block.
Block dispatched_rows(const OperatorPass& pass, const ConstMatrix& x) {
  if (!pass.is_cut() || pass.sharding.strategy.sequence_parallel) return {0, x.rows};
  return pass.sharding.own_rows;
}

template <class T>
std::span<T> slots_of(std::vector<T>& per_slot, const Block& tokens, std::int64_t copies) {
  return std::span(per_slot).subspan(static_cast<std::size_t>(tokens.begin * copies),
                                     static_cast<std::size_t>(tokens.size() * copies));
}

/// Factors of the rows that an operator handles; none if it does not weigh them.
template <class Shape>
std::span<const float> weights_of(const Shape& shape, Routing& routing, const Block& tokens) {
  if (!shape.weighted) return {};
  return slots_of(routing.weights, tokens, shape.experts_per_token);
}

/// Two factors of the gradients of routing weights: a row per token of this rank, and a row per
/// choice. One of them is a gradient.
struct WeightGradientFactors {
  ConstMatrix of_tokens, of_choices;
};
void make_weight_gradients(OperatorPass& pass, const WeightGradientFactors& factors,
                           const Block& tokens, std::int64_t copies) {
  Routing& routing = routing_of(pass, pass.input(1));
  routing.weight_gradients.assign(routing.weights.size(), 0.0F);
  pass.rank.run(pass.rank.kernels.combine_weight_gradient,
                {.dy = factors.of_tokens,
                 .x = factors.of_choices,
                 .index = routing.row_of_slot,
                 .copies = copies,
                 .dweights = slots_of(routing.weight_gradients, tokens, copies)});
}

/// A parameter of the router other than its matrix; -1: none.
TensorId router_parameter(const OperatorPass& pass, std::string_view name) {
  for (const TensorId id : pass.op().parameters)
    if (pass.rank.model.tensors[id.index()].name.ends_with(name)) return id;
  return TensorId(-1);
}

std::vector<float> as_floats(OperatorPass& pass, const Matrix& m) {
  std::vector<float> values(static_cast<std::size_t>(m.rows * m.columns));
  pass.rank.run(pass.rank.kernels.cast,
                {.x = flat(m), .y = {values.data(), m.rows * m.columns, Dtype::kFp32}});
  return values;
}

GateShape gate_shape(const OperatorPass& pass, const Router& router, std::int64_t tokens) {
  const int limit = pass.sharding.shard.routing.node_limit;
  const int nodes = pass.options.routing.nodes > 0 ? pass.options.routing.nodes : pass.expert_nodes;
  return {.score = router.score,
          .tokens = tokens,
          .experts = router.experts,
          .experts_per_token = router.experts_per_token,
          .normalized = router.normalized,
          .scale = static_cast<float>(router.scale),
          .groups = limit > 0 ? nodes : router.groups,
          .chosen_groups = limit > 0 ? limit : router.chosen_groups,
          .keys_per_group = limit > 0 ? 0 : router.scores_per_group};
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
  ConstVector bias;
  if (const TensorId id = router_parameter(pass, kRouterBias); id.value >= 0)
    bias = flat(pass.parameters.weight(id));
  std::vector<float> correction;
  if (const TensorId id = router_parameter(pass, kScoreCorrection); id.value >= 0)
    correction = as_floats(pass, pass.parameters.weight(id));
  pass.rank.run(pass.rank.kernels.gemm, {.a = x,
                                         .b = pass.parameters.weight(pass.op().parameters.front()),
                                         .transpose_b = true,
                                         .c = scores,
                                         .bias = bias});
  const std::span<float> all(static_cast<float*>(scores.data),
                             static_cast<std::size_t>(scores.rows * scores.columns));
  pass.rank.run(pass.rank.kernels.gate_forward, {.shape = gate_shape(pass, router, x.rows),
                                                 .logits = all,
                                                 .correction = correction,
                                                 .scores = all,
                                                 .experts = routing.experts,
                                                 .weights = routing.weights});
}

void backward_input(OperatorPass& pass, const Router& router) {
  const Matrix x = pass.value(pass.input()), scores = pass.value(pass.output());
  Routing& routing = routing_of(pass, pass.output());
  const Matrix logits =
      pass.make(pass.output(), Form::kGradient, x.rows, router.experts, Dtype::kFp32);
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

/// The "gradient" of a score correction is the number of rows of each expert: it is summed over all
/// ranks like a gradient and updates the correction at the end of the step.
void backward_weight(OperatorPass& pass, const Router&) {
  const Matrix logits = pass.gradient(pass.output());
  pass.rank.run(pass.rank.kernels.gemm,
                {.a = logits,
                 .transpose_a = true,
                 .b = pass.value(pass.input()),
                 .c = pass.parameters.gradient(pass.op().parameters.front()),
                 .beta = 1});
  if (const TensorId id = router_parameter(pass, kRouterBias); id.value >= 0)
    pass.rank.run(pass.rank.kernels.bias_gradient,
                  {.dy = logits, .dbias = floats_of(pass.parameters.gradient(id))});
  const TensorId correction = router_parameter(pass, kScoreCorrection);
  if (correction.value < 0) return;
  const std::span<float> counts = floats_of(pass.parameters.gradient(correction));
  pass.rank.wait();
  for (const std::int32_t expert : routing_of(pass, pass.output()).experts)
    counts[static_cast<std::size_t>(expert)] += 1;
}

// ---- to the experts ----

namespace {

/// Sorts all rows by expert.
void sort_rows(OperatorPass& pass, std::span<const std::int32_t> experts, Routing& routing) {
  routing.slot_of_row.assign(experts.size(), 0);
  routing.row_of_slot.assign(experts.size(), 0);
  pass.rank.run(pass.rank.kernels.sort_by_expert, {.experts = experts,
                                                   .slot_of_row = routing.slot_of_row,
                                                   .row_of_slot = routing.row_of_slot,
                                                   .counts = routing.counts});
}

}  // namespace

void forward(OperatorPass& pass, const TokenDispatch& dispatch) {
  const Matrix x = pass.value(pass.input(0));
  const Block own = dispatched_rows(pass, x);
  Routing& routing = routing_of(pass, pass.input(1));
  routing.counts.assign(static_cast<std::size_t>(pass.value(pass.input(1)).columns), 0);
  const std::span<const std::int32_t> experts =
      slots_of(routing.experts, own, dispatch.experts_per_token);
  if (pass.sharding.shard.routing.capacity > 0)
    fill_to_capacity(pass, experts, dispatch.experts_per_token, routing);
  else
    sort_rows(pass, experts, routing);
  routing.offsets = offsets_of(routing.counts);  // if all experts are local
  const Matrix rows =
      pass.make_value(pass.output(), static_cast<std::int64_t>(routing.slot_of_row.size()));
  pass.rank.run(pass.rank.kernels.gather_rows, {.x = rows_of(x, own.begin, own.size()),
                                                .index = routing.slot_of_row,
                                                .copies = dispatch.experts_per_token,
                                                .scales = weights_of(dispatch, routing, own),
                                                .y = rows});
  round_outgoing(pass, rows);
}

void backward_input(OperatorPass& pass, const TokenDispatch& dispatch) {
  const Matrix x = pass.value(pass.input(0));
  const Block own = dispatched_rows(pass, x);
  Routing& routing = routing_of(pass, pass.input(1));
  if (dispatch.weighted)
    make_weight_gradients(pass, {rows_of(x, own.begin, own.size()), pass.gradient(pass.output())},
                          own, dispatch.experts_per_token);
  const bool is_complete = own.size() == x.rows;  // else completed by gather_dispatched()
  OwnedMatrix sum = is_complete
                        ? pass.temporary(MemoryClass::kWorking, x.rows, x.columns, pass.rank.dtype)
                        : pass.allocate(pass.input(0), Form::kPartialGradient, x.rows, x.columns,
                                        pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.combine_rows, {.x = pass.gradient(pass.output()),
                                                 .index = routing.row_of_slot,
                                                 .copies = dispatch.experts_per_token,
                                                 .weights = weights_of(dispatch, routing, own),
                                                 .y = rows_of(sum.view(), own.begin, own.size())});
  if (is_complete)
    pass.add_gradient(pass.input(0), sum.view());
  else
    pass.state.dispatched_gradient = std::move(sum);
}

// ---- experts ----

namespace {

/// The output columns whose bias this rank holds: of a row-parallel layer each expert-tensor rank
/// adds a part of the bias to its partial result.
Block bias_columns(const OperatorPass& pass, const ExpertLinear& expert, std::int64_t columns) {
  if (expert.cut != LinearCut::kRow) return {0, columns};
  return block_of(columns, pass.sharding.strategy.degrees.expert_tensor,
                  shard_position_of(pass.sharding.strategy, pass.rank.rank).expert_tensor);
}

}  // namespace

void forward(OperatorPass& pass, const ExpertLinear& expert) {
  const Matrix x = pass.value(pass.input());
  const std::vector<TensorId>& parameters = pass.op().parameters;
  const Matrix y = pass.make_value(pass.output(), x.rows);
  ConstMatrix bias;
  OwnedMatrix widened;  // zero in the columns of other ranks
  if (expert.bias) {
    const Matrix held = pass.parameters.weight(parameters[1]);
    bias = held;
    if (held.columns < y.columns) {
      widened = pass.temporary(MemoryClass::kWorking, held.rows, y.columns, held.dtype);
      pass.rank.run(pass.rank.kernels.fill, {.y = flat(widened.view()), .value = 0});
      const Block mine = bias_columns(pass, expert, y.columns);
      pass.rank.run(pass.rank.kernels.copy_heads, {.x = held,
                                                   .y = widened.view(),
                                                   .size_x = held.columns,
                                                   .size_y = y.columns,
                                                   .to = mine.begin,
                                                   .count = mine.size()});
      bias = widened.view();
    }
  }
  pass.rank.run(pass.rank.kernels.grouped_gemm, {.x = x,
                                                 .weights = pass.parameters.weight(parameters[0]),
                                                 .y = y,
                                                 .bias = bias,
                                                 .offsets = routing_of_layer(pass).offsets});
}

void backward_input(OperatorPass& pass, const ExpertLinear&) {
  const Matrix x = pass.value(pass.input());
  pass.into_gradient(pass.input(), Form::kGradient, x, [&](const Matrix& dx, bool adds) {
    MW_CHECK(!adds);  // no other consumer
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
  if (!expert.bias) return;
  const Block mine = bias_columns(pass, expert, dy.columns);
  pass.rank.run(pass.rank.kernels.grouped_bias_gradient,
                {.dy = columns_of(dy, mine.begin, mine.size()),
                 .dbias = pass.parameters.gradient(parameters[1]),
                 .offsets = offsets});
}

// ---- home again ----

void forward(OperatorPass& pass, const TokenCombine& combine) {
  const Matrix rows = pass.value(pass.input(0)), scores = pass.value(pass.input(1));
  const Block own = dispatched_rows(pass, scores);
  Routing& routing = routing_of(pass, pass.input(1));
  const Matrix y = pass.make_value(pass.output(), scores.rows);
  pass.rank.run(pass.rank.kernels.combine_rows, {.x = rows,
                                                 .index = routing.row_of_slot,
                                                 .copies = combine.experts_per_token,
                                                 .weights = weights_of(combine, routing, own),
                                                 .y = rows_of(y, own.begin, own.size())});
}

void backward_input(OperatorPass& pass, const TokenCombine& combine) {
  const Block own = dispatched_rows(pass, pass.value(pass.input(1)));
  Routing& routing = routing_of(pass, pass.input(1));
  const Matrix dy = rows_of(pass.gradient(pass.output()), own.begin, own.size());
  if (combine.weighted)
    make_weight_gradients(pass, {dy, pass.value(pass.input(0))}, own, combine.experts_per_token);
  const Matrix drows =
      pass.make(pass.input(0), Form::kGradient,
                static_cast<std::int64_t>(routing.slot_of_row.size()), dy.columns, pass.rank.dtype);
  pass.rank.run(pass.rank.kernels.gather_rows, {.x = dy,
                                                .index = routing.slot_of_row,
                                                .copies = combine.experts_per_token,
                                                .scales = weights_of(combine, routing, own),
                                                .y = drows});
  round_outgoing(pass, drows);
}

}  // namespace meshwright
