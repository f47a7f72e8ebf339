// Buffers of the router, of dispatched and combined rows, and of biases of sharded experts
// (executor/operators/operator_experts.cpp, expert_exchange.cpp).
//
// A rank holds routed rows in three places: the rows of its own tokens ("home"), the rows received
// for its experts, and, with expert-tensor parallelism, the rows of the whole expert-tensor group.
// Their number follows ExpertRouting; it is exact with a capacity factor or a single expert rank.
#include <algorithm>

#include "core/graph/live_buffers.hpp"

namespace meshwright {
namespace {

/// Sizes of a routed tensor in each place.
struct TravellingRows {
  std::int64_t home = 0, arrived = 0, of_group = 0;  ///< rows
  std::int64_t width = 0, element = 0;
  Bytes at_home() const { return Bytes(home * width * element); }
  Bytes with_experts() const { return Bytes(arrived * width * element); }
  Bytes with_group() const { return Bytes(of_group * width * element); }
};
TravellingRows rows_of(const LiveBuffers& live, TensorId id) {
  const ActivationTensor& tensor = live.activation(id);
  const RoutedTokens routed{tensor.rows_per_token, std::max(1, tensor.experts)};
  const std::int64_t arrived = routed_rows(live.shard, routed, /*busiest=*/true);
  return {.home = routed_rows(live.shard, routed, /*busiest=*/false),
          .arrived = arrived,
          .of_group = arrived * live.shard.degrees.expert_tensor,
          .width = tensor.width,
          .element = stored_element(live.shard.dtype).value};
}

/// Without sequence parallelism each tensor rank dispatches its block of the replicated tokens.
bool dispatches_a_block(const LiveBuffers& live) {
  return live.is_cut() && !live.shard.sequence_parallel;
}

/// Each expert-tensor rank holds a shard of the biases of row-parallel layers and adds it to an
/// otherwise zero row, one per expert.
HeldBuffer widened_bias(const LiveBuffers& live, const Operator& o, const ExpertLinear& expert) {
  const ParallelDegrees& d = live.shard.degrees;
  if (!expert.bias || d.expert_tensor == 1 || expert.cut != LinearCut::kRow) return {};
  const ActivationTensor& out = live.activation(o.outputs.front());
  return {stored_element(live.shard.dtype) * (out.experts / d.expert * out.width),
          MemoryClass::kWorking};
}

}  // namespace

bool expert_forward(LiveBuffers& live, OperatorId id) {
  const Operator& o = operator_of(live, id);
  if (std::holds_alternative<TokenDispatch>(o.shape)) {
    live.make(LiveBuffers::key(o.outputs.front()),
              {rows_of(live, o.outputs.front()).at_home(), MemoryClass::kActivations});
    return true;
  }
  const auto* expert = std::get_if<ExpertLinear>(&o.shape);
  if (expert == nullptr) return false;
  live.make(LiveBuffers::key(o.outputs.front()), live.value_of(o.outputs.front()));
  live.meanwhile(widened_bias(live, o, *expert), [] {});
  return true;
}

bool expert_backward_input(LiveBuffers& live, OperatorId id) {
  const Operator& o = operator_of(live, id);
  if (std::holds_alternative<TokenCombine>(o.shape)) {  // gradients of scores are the router's
    live.make(LiveBuffers::gradient(o.inputs[0]),
              {rows_of(live, o.inputs[0]).at_home(), MemoryClass::kWorking});
    return true;
  }
  if (std::holds_alternative<TokenDispatch>(o.shape)) {
    const HeldBuffer sum{live.local(o.inputs[0]), MemoryClass::kWorking};
    if (dispatches_a_block(live))
      live.make(LiveBuffers::key(o.inputs[0], Form::kPartialGradient), sum);
    else
      live.meanwhile(sum, [&] { live.add_gradient(o.inputs[0]); });
    return true;
  }
  if (!std::holds_alternative<Router>(o.shape)) return false;
  live.add_gradient(o.outputs.front());  // of the logits, as large as the scores
  live.add_gradient(o.inputs[0]);
  return true;
}

namespace {

/// The source rows, a communication buffer, and the destination rows.
void exchange(LiveBuffers& live, const ActivationBuffer& rows, Bytes travelling, Bytes then) {
  const HeldBuffer before = live.take(rows);
  live.meanwhile(before, [&] {
    live.meanwhile({travelling, MemoryClass::kCommunication}, [&] {
      live.make(rows, {then, before.what});
    });
  });
}

/// Every rank has a partial sum of the rows of its group and reduces its own rows in fp32.
void sum_group(LiveBuffers& live, const ActivationBuffer& rows, const TravellingRows& size) {
  const HeldBuffer summands = live.take(rows);
  const HeldBuffer all{size.with_group(), MemoryClass::kCommunication};
  const HeldBuffer sum{Bytes(size.arrived * size.width * kFloat32Bytes), MemoryClass::kWorking};
  live.meanwhile(summands, [&] {
    live.meanwhile(all, [&] {    // sorted by rank
      live.meanwhile(all, [&] {  // this rank's rows from every rank
        live.meanwhile(sum, [&] { live.make(rows, {size.with_experts(), summands.what}); });
      });
    });
  });
}

}  // namespace

void over_expert_ranks(LiveBuffers& live, OperatorId id, const Collective& collective) {
  const Operator& o = operator_of(live, id);
  const bool dispatches = std::holds_alternative<TokenDispatch>(o.shape);
  const bool forward = collective.phase == Phase::kForward;
  if (collective.axis == Axis::kTensor) {
    if (forward || !dispatches) return;  // outputs are gathered in place
    const HeldBuffer sum = live.take(LiveBuffers::key(o.inputs[0], Form::kPartialGradient));
    return live.meanwhile(sum, [&] { live.add_gradient(o.inputs[0]); });
  }
  const TensorId tensor = dispatches ? o.outputs.front() : o.inputs[0];
  const ActivationBuffer rows = LiveBuffers::key(tensor, forward ? Form::kValue : Form::kGradient);
  const TravellingRows size = rows_of(live, tensor);
  switch (collective.kind) {
    case CollectiveKind::kAllToAll:
      return exchange(live, rows, size.with_experts(),
                      dispatches == forward ? size.with_experts() : size.at_home());
    case CollectiveKind::kAllGather:
      return exchange(live, rows, size.with_group(), size.with_group());
    default:
      return sum_group(live, rows, size);
  }
}

}  // namespace meshwright
