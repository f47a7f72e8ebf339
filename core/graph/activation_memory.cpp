// Memory of a slice of a stage: executes its passes with buffer sizes only. Every buffer is
// allocated at the same point and with the same size as in the executor
// (executor/operators/operator_*.cpp).
#include <algorithm>

#include "core/graph/live_buffers.hpp"

namespace meshwright {
namespace {

using HeldBuffers = LiveBuffers::Map;

/// Sum of the buffers in `one` that are not in `other`.
MemoryAmounts difference(const HeldBuffers& one, const HeldBuffers& other) {
  MemoryAmounts sum;
  for (const auto& [buffer, held] : one) {
    const auto found = other.find(buffer);
    if (found == other.end() || found->second != held) sum[held.what] += held.bytes;
  }
  return sum;
}

/// The buffers of one micro-batch in a slice.
class StageBuffers {
 public:
  StageBuffers(const ModelGraph& model, const Strategy& strategy, const StageSlice& slice)
      : model_(model),
        slice_(slice),
        live_(model, shard_shape_of(strategy)),
        input_(handed_over_behind(slice.layers.front().layer.value - 1)),
        output_(handed_over_behind(slice.layers.back().layer.value)) {}

  SliceMemory run() {
    SliceMemory memory;
    HeldBuffers held;
    if (input_.value >= 0 && slice_.previous_is_here) held[key(input_)] = live_.value_of(input_);
    memory.forward = pass(TaskKind::kForward, held);
    held = live_.all();
    if (slice_.next_is_here) held.erase(key(output_));
    if (output_.value >= 0 && slice_.next_is_here)
      held[gradient(output_)] = live_.gradient_of(output_);
    memory.backward = pass(TaskKind::kBackward, held);
    memory.backward_input = pass(TaskKind::kBackwardInput, held);
    held = live_.all();
    held.erase(gradient(input_));
    memory.backward_weight = pass(TaskKind::kBackwardWeight, held);
    return memory;
  }

 private:
  static ActivationBuffer key(TensorId id, Form form = Form::kValue) {
    return LiveBuffers::key(id, form);
  }
  static ActivationBuffer gradient(TensorId id) { return LiveBuffers::gradient(id); }

  TensorId handed_over_behind(std::int32_t layer) const {
    if (layer < 0 || layer + 1 >= static_cast<std::int32_t>(model_.layers.size()))
      return TensorId(-1);
    const Layer& l = model_.layers[static_cast<std::size_t>(layer)];
    return model_.operators[static_cast<std::size_t>(l.first_operator + l.operator_count - 1)]
        .outputs.front();
  }

  // ---- across devices ----

  void receive(const ActivationBuffer& buffer, const HeldBuffer& held) {
    arrives_[held.what] += held.bytes;
    live_.make(buffer, held);
  }
  void send(const ActivationBuffer& buffer) {
    if (!live_.has(buffer)) return;
    const HeldBuffer sent = live_.take(buffer);
    departs_[sent.what] += sent.bytes;
  }

  // ---- a pass ----

  PassMemory pass(TaskKind kind, const HeldBuffers& before) {
    live_.start_from(before);
    arrives_ = departs_ = {};
    arrive(kind);
    LayerVisits visits(model_, [&](LayerId layer, OperatorId op, Visit visit) {
      for (const ActivationBuffer& dead : read_no_more(model_, slice_.keeps, layer, op, visit))
        live_.drop(dead);
    });
    if (kind == TaskKind::kForward)
      for (const LayerSteps& layer : slice_.layers) follow(layer, *layer.forward, kind, visits);
    else
      for (auto layer = slice_.layers.rbegin(); layer != slice_.layers.rend(); ++layer)
        backward(*layer, kind, visits);
    visits.finish();
    const MemoryAmounts peak = live_.peak();
    depart(kind);
    PassMemory memory;
    memory.acquired = difference(live_.all(), before);
    memory.released = difference(before, live_.all());
    memory.transient = peak;
    memory.transient -= sum_of(before);
    memory.transient -= memory.acquired;
    memory.arrives = arrives_;
    memory.departs = departs_;
    return memory;
  }

  void backward(const LayerSteps& layer, TaskKind kind, LayerVisits& visits) {
    if (kind == TaskKind::kBackwardWeight)
      return follow(layer, *layer.backward_weight, kind, visits);
    if (layer.recompute != nullptr) follow(layer, *layer.recompute, kind, visits);
    follow(layer, kind == TaskKind::kBackward ? *layer.backward : *layer.backward_input, kind,
           visits);
  }

  /// Allocates the tensors received from another device.
  void arrive(TaskKind kind) {
    if (kind == TaskKind::kForward && input_.value >= 0 && !slice_.previous_is_here)
      receive(key(input_), live_.value_of(input_));
    const bool begins = kind == TaskKind::kBackward || kind == TaskKind::kBackwardInput;
    if (begins && output_.value >= 0 && !slice_.next_is_here)
      receive(gradient(output_), live_.gradient_of(output_));
  }
  /// Accounts for the tensors sent to another device and for the remaining buffers.
  void depart(TaskKind kind) {
    if (kind == TaskKind::kForward && output_.value >= 0 && !slice_.next_is_here &&
        !slice_.keeps.keeps(output_))
      send(key(output_));
    if (kind == TaskKind::kForward) return;
    if (!slice_.previous_is_here) send(gradient(input_));
    if (kind == TaskKind::kBackwardInput) return;
    HeldBuffers rest;
    if (live_.has(gradient(input_))) rest[gradient(input_)] = live_.at(gradient(input_));
    live_.start_from(rest);
  }

  void follow(const LayerSteps& layer, const std::vector<Step>& steps, TaskKind kind,
              LayerVisits& visits) {
    OperatorId last(-1);
    Phase last_phase = Phase::kForward;
    for (const Step& step : steps) {
      if (const auto* kernel = std::get_if<Kernel>(&step)) {
        const OperatorId id = here(layer, kernel->source);
        visits.go_to(layer.layer, id, visit_of(kind, kernel->phase));
        if (id == last && kernel->phase == last_phase) continue;
        last = id;
        last_phase = kernel->phase;
        compute(id, kernel->phase);
      } else {
        const auto& collective = std::get<Collective>(step);
        const OperatorId id = here(layer, collective.source);
        visits.go_to(layer.layer, id, visit_of(kind, collective.phase));
        last = OperatorId(-1);
        communicate(id, collective);
      }
    }
  }
  OperatorId here(const LayerSteps& layer, OperatorId source) const {
    return OperatorId(source.value - model_.layers[layer.first_of_class.index()].first_operator +
                      model_.layers[layer.layer.index()].first_operator);
  }
  const Operator& op(OperatorId id) const { return model_.operators[id.index()]; }
  bool is_cut() const { return live_.is_cut(); }
  bool attends_over(ContextAlgorithm algorithm) const {
    return live_.shard.degrees.context > 1 && live_.shard.context == algorithm;
  }

  // ---- operators ----

  void compute(OperatorId id, Phase phase) {
    if (phase == Phase::kForward) forward(id);
    if (phase == Phase::kBackwardInput) backward_input(id);
  }

  static bool is_latent_rotary(const Operator& o) {
    return std::holds_alternative<RotaryEmbedding>(o.shape) && o.inputs.size() == 3;
  }

  /// Every tensor rank has a partial sum for all tokens.
  bool makes_summands(const Operator& o) const {
    if (!is_cut()) return false;
    if (const auto* linear = std::get_if<Linear>(&o.shape)) return linear->cut == LinearCut::kRow;
    if (!std::holds_alternative<EmbeddingLookup>(o.shape)) return false;
    const TensorId table = o.parameters.front();
    return std::get<ParameterTensor>(model_.tensors[table.index()].shape).cut ==
           ParameterCut::kTensor;
  }

  void forward(OperatorId id) {
    const Operator& o = op(id);
    if (std::holds_alternative<CrossEntropy>(o.shape)) return;
    if (std::holds_alternative<Attention>(o.shape)) return attend(id);
    if (is_latent_rotary(o)) return forward_latent_rotary(live_, id);
    if (expert_forward(live_, id)) return;
    for (const TensorId out : o.outputs) {
      HeldBuffer made = live_.value_of(out);
      if (makes_summands(o)) made.bytes = live_.gathered(out);
      live_.make(key(out), made);
    }
    const auto* add = std::get_if<ResidualAdd>(&o.shape);
    if (add != nullptr && add->dropout > 0)
      live_.make({id.value, Form::kDropoutMask}, {Bytes(live_.local(o.outputs.front()).value /
                                                        stored_element(live_.shard.dtype).value),
                                                  MemoryClass::kActivations});
  }

  void attend(OperatorId id) {
    if (attends_over(ContextAlgorithm::kRing)) return ring_forward(live_, id);
    if (attends_over(ContextAlgorithm::kAllToAll)) return attend_cut_heads(live_, id);
    const TensorId out = op(id).outputs.front();
    live_.make(key(out), live_.value_of(out));
    live_.make({id.value, Form::kSoftmaxSums},
               {softmax_sums(live_, id), MemoryClass::kActivations});
  }

  void differentiate_attention(OperatorId id) {
    if (attends_over(ContextAlgorithm::kRing)) return ring_backward(live_, id);
    if (attends_over(ContextAlgorithm::kAllToAll)) return differentiate_cut_heads(live_, id);
    const std::vector<TensorId>& inputs = op(id).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (i > 0 && live_.shard.degrees.context > 1)
        live_.make(key(inputs[i], Form::kPartialGradient),
                   {live_.local(inputs[i]) * live_.shard.degrees.context, MemoryClass::kWorking});
      else
        live_.add_gradient(inputs[i]);
  }

  void backward_input(OperatorId id) {
    const Operator& o = op(id);
    if (std::holds_alternative<EmbeddingLookup>(o.shape)) return;
    if (std::holds_alternative<Attention>(o.shape)) return differentiate_attention(id);
    if (is_latent_rotary(o)) return backward_latent_rotary(live_, id);
    if (expert_backward_input(live_, id)) return;
    if (const auto* add = std::get_if<ResidualAdd>(&o.shape); add != nullptr && add->dropout > 0) {
      live_.meanwhile({live_.local(o.outputs.front()), MemoryClass::kWorking}, [&] {
        for (const TensorId in : o.inputs) live_.add_gradient(in);
      });
      return;
    }
    const auto* linear = std::get_if<Linear>(&o.shape);
    const bool partial = linear != nullptr && is_cut() && linear->cut == LinearCut::kColumn;
    for (const TensorId in : o.inputs) {
      const ActivationBuffer part = key(in, Form::kPartialGradient);
      if (!partial)
        live_.add_gradient(in);
      else if (!live_.has(part))
        live_.make(part, {live_.gathered(in), MemoryClass::kWorking});
    }
  }

  // ---- collectives ----

  void communicate(OperatorId id, const Collective& collective) {
    const Operator& o = op(id);
    if (collective.axis == Axis::kContext)
      return over_context_ranks(live_, id, collective, keeps());
    if (std::holds_alternative<TokenDispatch>(o.shape) ||
        std::holds_alternative<TokenCombine>(o.shape))
      return over_expert_ranks(live_, id, collective);
    if (collective.axis != Axis::kTensor || std::holds_alternative<CrossEntropy>(o.shape)) return;
    const TensorId tensor = translated(collective, o);
    const bool before = std::find(o.inputs.begin(), o.inputs.end(), tensor) != o.inputs.end();
    if (collective.kind == CollectiveKind::kAllGather)
      return live_.make(
          key(tensor, before ? Form::kGatheredValue
                             : (collective.phase == Phase::kForward ? Form::kGatheredValue
                                                                    : Form::kGatheredGradient)),
          {live_.gathered(tensor), MemoryClass::kWorking});
    if (before) return sum_input_gradient(tensor, collective.kind);
    if (collective.kind == CollectiveKind::kAllReduce) return;
    const HeldBuffer all = live_.take(key(tensor));
    live_.meanwhile(all, [&] { live_.make(key(tensor), live_.value_of(tensor)); });
  }
  const StageKeeps& keeps() const { return slice_.keeps; }

  /// All-reduced partial gradients become the gradient or are added to it.
  void sum_input_gradient(TensorId tensor, CollectiveKind kind) {
    const HeldBuffer all = live_.take(key(tensor, Form::kPartialGradient));
    if (kind == CollectiveKind::kAllReduce && !live_.has(gradient(tensor)))
      live_.make(gradient(tensor), all);
    else
      live_.meanwhile(all, [&] { live_.add_gradient(tensor); });
  }

  /// The tensor of this layer that corresponds to the collective's in the first layer of the class.
  TensorId translated(const Collective& collective, const Operator& o) const {
    const Operator& first = op(collective.source);
    for (std::size_t i = 0; i < first.inputs.size(); ++i)
      if (first.inputs[i] == collective.tensor) return o.inputs[i];
    for (std::size_t i = 0; i < first.outputs.size(); ++i)
      if (first.outputs[i] == collective.tensor) return o.outputs[i];
    return collective.tensor;
  }

  const ModelGraph& model_;
  const StageSlice& slice_;
  LiveBuffers live_;
  TensorId input_, output_;          ///< boundary tensors of the slice; -1: none
  MemoryAmounts arrives_, departs_;  ///< of the pass
};

}  // namespace

SliceMemory slice_memory(const ModelGraph& model, const Strategy& strategy,
                         const StageSlice& slice) {
  return StageBuffers(model, strategy, slice).run();
}

}  // namespace meshwright
