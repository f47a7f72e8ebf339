// Buffers of context-parallel attention (executor/operators/ring_attention.cpp,
// context_exchange.cpp) and of rotary embeddings in latent attention
// (executor/operators/operator_rotary.cpp).
#include <algorithm>

#include "core/graph/live_buffers.hpp"

namespace meshwright {
namespace {

const Attention& attention_of(const LiveBuffers& live, OperatorId id) {
  return std::get<Attention>(operator_of(live, id).shape);
}
std::int64_t local_heads(const LiveBuffers& live, OperatorId id) {
  const int ranks = live.shard.degrees.tensor;
  return divide_up(attention_of(live, id).heads, ranks);
}
HeldBuffer floats(std::int64_t count) {
  return {Bytes(count * kFloat32Bytes), MemoryClass::kWorking};
}
/// The keys and values of one rank, or their gradients.
HeldBuffer blocks(const LiveBuffers& live, OperatorId id, int count) {
  const std::vector<TensorId>& inputs = operator_of(live, id).inputs;
  return {(live.local(inputs[1]) + live.local(inputs[2])) * count, MemoryClass::kCommunication};
}

}  // namespace

Bytes softmax_sums(const LiveBuffers& live, OperatorId id) {
  return Bytes(local_tokens(live.shard).gathered * local_heads(live, id) * kFloat32Bytes);
}

// ---- ring attention ----

/// Results are combined in fp32, in addition to the current and the incoming block of keys; the
/// result of one call covers half of a rank's tokens of one sequence.
void ring_forward(LiveBuffers& live, OperatorId id) {
  const TensorId out = operator_of(live, id).outputs.front();
  const std::int64_t columns = local_heads(live, id) * attention_of(live, id).value_size;
  const LocalTokens tokens = local_tokens(live.shard);
  live.make({id.value, Form::kSoftmaxSums}, {softmax_sums(live, id), MemoryClass::kActivations});
  live.meanwhile(floats(tokens.gathered * columns), [&] {
    live.meanwhile(blocks(live, id, 2), [&] {
      live.meanwhile(floats(tokens.sequence / 2 * columns), [] {});
      live.make(LiveBuffers::key(out), live.value_of(out));
    });
  });
}

/// The gradients of the current block arrive one step later than the block.
void ring_backward(LiveBuffers& live, OperatorId id) {
  const TensorId queries = operator_of(live, id).inputs.front();
  const std::int64_t columns = local_heads(live, id) * attention_of(live, id).key_size;
  live.meanwhile(floats(local_tokens(live.shard).gathered * columns),
                 [&] { live.meanwhile(blocks(live, id, 3), [&] { live.add_gradient(queries); }); });
}

// ---- full sequences, sharded heads ----

void attend_cut_heads(LiveBuffers& live, OperatorId id) {
  const TensorId out = operator_of(live, id).outputs.front();
  live.make(LiveBuffers::key(out, Form::kHeadCutValue),
            {live.local(out), MemoryClass::kCommunication});
  live.make({id.value, Form::kSoftmaxSums}, {softmax_sums(live, id), MemoryClass::kActivations});
}

void differentiate_cut_heads(LiveBuffers& live, OperatorId id) {
  for (const TensorId in : operator_of(live, id).inputs)
    live.make(LiveBuffers::key(in, Form::kHeadCutGradient),
              {live.local(in), MemoryClass::kWorking});
}

namespace {

/// Send and receive buffers of an all-to-all, packed by rank.
HeldBuffer parcels(Bytes travelling) { return {travelling * 2, MemoryClass::kCommunication}; }

Bytes sum_of_inputs(const LiveBuffers& live, const Operator& o) {
  Bytes sum;
  for (const TensorId in : o.inputs) sum += live.local(in);
  return sum;
}

void queries_to_heads(LiveBuffers& live, const Operator& o, const StageKeeps& keeps) {
  for (const TensorId in : o.inputs)
    live.make(LiveBuffers::key(in, Form::kHeadCutValue),
              {live.local(in), MemoryClass::kActivations});
  live.meanwhile(parcels(sum_of_inputs(live, o)), [] {});
  if (keeps.exchanges_heads_again()) return;
  for (const TensorId in : o.inputs) live.drop(LiveBuffers::key(in));
}

void outputs_to_tokens(LiveBuffers& live, const Operator& o) {
  const TensorId out = o.outputs.front();
  const HeldBuffer heads = live.take(LiveBuffers::key(out, Form::kHeadCutValue));
  live.meanwhile(heads, [&] {
    live.make(LiveBuffers::key(out), live.value_of(out));
    live.meanwhile(parcels(live.local(out)), [] {});
  });
}

/// One number per row and head, computed from the full output, is sent together with the gradient.
void gradients_to_heads(LiveBuffers& live, OperatorId id) {
  const TensorId out = operator_of(live, id).outputs.front();
  const HeldBuffer numbers{softmax_sums(live, id), MemoryClass::kWorking};
  live.meanwhile(numbers, [&] {
    live.make(LiveBuffers::key(out, Form::kHeadCutGradient),
              {live.local(out), MemoryClass::kCommunication});
    live.meanwhile(parcels(live.local(out)), [] {});
    live.meanwhile(parcels(numbers.bytes), [] {});
  });
}

void gradients_to_tokens(LiveBuffers& live, const Operator& o) {
  for (const TensorId in : o.inputs) live.make(LiveBuffers::gradient(in), live.gradient_of(in));
  live.meanwhile(parcels(sum_of_inputs(live, o)), [] {});
  for (const TensorId in : o.inputs)
    for (const Form form : {Form::kHeadCutGradient, Form::kHeadCutValue})
      live.drop(LiveBuffers::key(in, form));
  live.drop(LiveBuffers::key(o.outputs.front(), Form::kHeadCutGradient));
}

void exchange_heads(LiveBuffers& live, OperatorId id, bool forward, const StageKeeps& keeps) {
  const Operator& o = operator_of(live, id);
  if (forward)
    return live.has(LiveBuffers::key(o.outputs.front(), Form::kHeadCutValue))
               ? outputs_to_tokens(live, o)
               : queries_to_heads(live, o, keeps);
  if (live.has(LiveBuffers::key(o.inputs.front(), Form::kHeadCutGradient)))
    gradients_to_tokens(live, o);
  else
    gradients_to_heads(live, id);
}

/// Keys, then values, through a buffer in rank order.
void gather_or_scatter(LiveBuffers& live, const Operator& o, CollectiveKind kind) {
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    const TensorId in = o.inputs[i];
    const HeldBuffer all{live.local(in) * live.shard.degrees.context, MemoryClass::kCommunication};
    if (kind == CollectiveKind::kAllGather) {
      live.meanwhile(all, [&] { live.make(LiveBuffers::key(in, Form::kGatheredValue), all); });
      continue;
    }
    const HeldBuffer summands = live.take(LiveBuffers::key(in, Form::kPartialGradient));
    live.meanwhile(summands, [&] { live.meanwhile(all, [&] { live.add_gradient(in); }); });
  }
}

}  // namespace

void over_context_ranks(LiveBuffers& live, OperatorId id, const Collective& collective,
                        const StageKeeps& keeps) {
  const Operator& o = operator_of(live, id);
  const bool forward = collective.phase == Phase::kForward;
  switch (live.shard.context) {
    case ContextAlgorithm::kAllGather:
      return gather_or_scatter(live, o, collective.kind);
    case ContextAlgorithm::kAllToAll:
      return exchange_heads(live, id, forward, keeps);
    case ContextAlgorithm::kRing:
      // Exchanges before the kernels are part of them; those after them return gradients.
      if (forward || !live.has(LiveBuffers::gradient(o.inputs.front()))) return;
      live.meanwhile(blocks(live, id, 1), [&] {
        live.add_gradient(o.inputs[1]);
        live.add_gradient(o.inputs[2]);
      });
  }
}

// ---- latent attention ----

/// Queries, and full keys, into which the part shared by all heads is copied.
void forward_latent_rotary(LiveBuffers& live, OperatorId id) {
  const Operator& o = operator_of(live, id);
  live.make(LiveBuffers::key(o.outputs[0]), live.value_of(o.outputs[0]));
  const ActivationBuffer all = LiveBuffers::key(o.inputs[2], Form::kGatheredValue);
  const Bytes shared = live.has(all) ? live.at(all).bytes : live.local(o.inputs[2]);
  live.meanwhile({shared, MemoryClass::kWorking},
                 [&] { live.make(LiveBuffers::key(o.outputs[1]), live.value_of(o.outputs[1])); });
}

/// Each tensor rank has the gradient of the shared part from its own heads only.
void backward_latent_rotary(LiveBuffers& live, OperatorId id) {
  const Operator& o = operator_of(live, id);
  live.add_gradient(o.inputs[0]);
  live.add_gradient(o.inputs[1]);
  const HeldBuffer shared{live.gathered(o.inputs[2]), MemoryClass::kWorking};
  live.meanwhile(shared, [&] {
    if (live.is_cut())
      live.make(LiveBuffers::key(o.inputs[2], Form::kPartialGradient), shared);
    else
      live.add_gradient(o.inputs[2]);
  });
}

}  // namespace meshwright
