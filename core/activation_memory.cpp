// What a slice of a stage holds and needs: its passes, carried out with sizes alone. Every buffer
// is made where, and as large as, the executor makes it (executor/operator_*.cpp).
#include <algorithm>
#include <map>

#include "core/activation_buffers.hpp"
#include "core/operator_work.hpp"

namespace meshwright {
namespace {

struct Held {
  Bytes bytes;
  MemoryClass what = MemoryClass::kActivations;
  friend bool operator==(const Held&, const Held&) = default;
};
using HeldBuffers = std::map<ActivationBuffer, Held>;

MemoryAmounts sum_of(const HeldBuffers& buffers) {
  MemoryAmounts sum;
  for (const auto& [buffer, held] : buffers) sum[held.what] += held.bytes;
  return sum;
}
/// Of what is in `one` and not in `other`.
MemoryAmounts difference(const HeldBuffers& one, const HeldBuffers& other) {
  MemoryAmounts sum;
  for (const auto& [buffer, held] : one) {
    const auto found = other.find(buffer);
    if (found == other.end() || found->second != held) sum[held.what] += held.bytes;
  }
  return sum;
}

/// Buffers of one micro-batch in a slice.
class StageBuffers {
 public:
  StageBuffers(const ModelGraph& model, const Strategy& strategy, const StageSlice& slice)
      : model_(model),
        slice_(slice),
        shard_(shard_shape_of(strategy)),
        whole_(shard_),
        input_(handed_over_behind(slice.layers.front().layer.value - 1)),
        output_(handed_over_behind(slice.layers.back().layer.value)) {
    whole_.sequence_parallel = false;
    logits_ = logit_bytes(model, LayerId(model.layers.size() - 1), shard_);
  }

  SliceMemory run() {
    SliceMemory memory;
    if (input_.value >= 0 && slice_.previous_is_here) live_[key(input_)] = value_of(input_);
    memory.forward = pass(TaskKind::kForward);
    live_.erase(next_takes());
    const HeldBuffers held = live_;
    if (output_.value >= 0 && slice_.next_is_here) live_[gradient(output_)] = gradient_of(output_);
    const HeldBuffers at_backward = live_;
    memory.backward = pass(TaskKind::kBackward);
    live_ = at_backward;
    memory.backward_input = pass(TaskKind::kBackwardInput);
    live_.erase(gradient(input_));
    memory.backward_weight = pass(TaskKind::kBackwardWeight);
    return memory;
  }

 private:
  static ActivationBuffer key(TensorId id, Form form = Form::kValue) { return {id.value, form}; }
  static ActivationBuffer gradient(TensorId id) { return {id.value, Form::kGradient}; }
  ActivationBuffer next_takes() const {
    return slice_.next_is_here ? key(output_) : ActivationBuffer{};
  }

  TensorId handed_over_behind(std::int32_t layer) const {
    if (layer < 0 || layer + 1 >= static_cast<std::int32_t>(model_.layers.size()))
      return TensorId(-1);
    const Layer& l = model_.layers[static_cast<std::size_t>(layer)];
    return model_.operators[static_cast<std::size_t>(l.first_operator + l.operator_count - 1)]
        .outputs.front();
  }

  // ---- sizes ----

  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model_.tensors[id.index()].shape);
  }
  Bytes local(TensorId id) const { return activation_bytes(activation(id), shard_); }
  Bytes gathered(TensorId id) const { return activation_bytes(activation(id), whole_); }
  bool is_logits(TensorId id) const {
    const Operator& last = model_.operators.back();
    return std::holds_alternative<CrossEntropy>(last.shape) && last.inputs.front() == id;
  }
  Held value_of(TensorId id) const {
    if (is_logits(id)) return {logits_.values, MemoryClass::kLogits};
    return {local(id), MemoryClass::kActivations};
  }
  Held gradient_of(TensorId id) const {
    if (is_logits(id)) return {logits_.gradient, MemoryClass::kLogits};
    return {local(id), MemoryClass::kWorking};
  }

  // ---- making and letting go ----

  void make(const ActivationBuffer& buffer, const Held& held) {
    drop(buffer);  // what was there goes first
    live_[buffer] = held;
    amounts_[held.what] += held.bytes;
    note_peak();
  }
  void drop(const ActivationBuffer& buffer) {
    const auto found = live_.find(buffer);
    if (found == live_.end()) return;
    amounts_[found->second.what] -= found->second.bytes;
    live_.erase(found);
  }
  void receive(const ActivationBuffer& buffer, const Held& held) {
    arrives_[held.what] += held.bytes;
    make(buffer, held);
  }
  void send(const ActivationBuffer& buffer) {
    const auto found = live_.find(buffer);
    if (found != live_.end()) departs_[found->second.what] += found->second.bytes;
    drop(buffer);
  }
  /// Only while the next `then` is carried out.
  template <class Then>
  void meanwhile(const Held& held, const Then& then) {
    amounts_[held.what] += held.bytes;
    note_peak();
    then();
    amounts_[held.what] -= held.bytes;
  }
  void note_peak() {
    if (total(amounts_) > total(peak_)) peak_ = amounts_;
  }
  void add_gradient(TensorId id) {
    if (!live_.contains(gradient(id))) make(gradient(id), gradient_of(id));
  }

  // ---- a pass ----

  PassMemory pass(TaskKind kind) {
    const HeldBuffers before = live_;
    amounts_ = sum_of(live_);
    peak_ = amounts_;
    arrives_ = departs_ = {};
    arrive(kind);
    LayerVisits visits(model_, [&](LayerId layer, OperatorId op, Visit visit) {
      for (const ActivationBuffer& dead : read_no_more(model_, slice_.keeps, layer, op, visit))
        drop(dead);
    });
    if (kind == TaskKind::kForward)
      for (const LayerSteps& layer : slice_.layers) follow(layer, *layer.forward, kind, visits);
    else
      for (auto layer = slice_.layers.rbegin(); layer != slice_.layers.rend(); ++layer)
        backward(*layer, kind, visits);
    visits.finish();
    depart(kind);
    PassMemory memory;
    memory.acquired = difference(live_, before);
    memory.released = difference(before, live_);
    memory.transient = peak_;
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

  /// What comes from another device.
  void arrive(TaskKind kind) {
    if (kind == TaskKind::kForward && input_.value >= 0 && !slice_.previous_is_here)
      receive(key(input_), value_of(input_));
    const bool begins = kind == TaskKind::kBackward || kind == TaskKind::kBackwardInput;
    if (begins && output_.value >= 0 && !slice_.next_is_here)
      receive(gradient(output_), gradient_of(output_));
  }
  /// What is sent to another device, and what is left of the micro-batch.
  void depart(TaskKind kind) {
    if (kind == TaskKind::kForward && output_.value >= 0 && !slice_.next_is_here &&
        !slice_.keeps.keeps(output_))
      send(key(output_));
    if (kind == TaskKind::kForward) return;
    if (!slice_.previous_is_here) send(gradient(input_));
    if (kind == TaskKind::kBackwardInput) return;
    const auto handed_on = live_.find(gradient(input_));
    const HeldBuffers rest = handed_on == live_.end() ? HeldBuffers{} : HeldBuffers{*handed_on};
    live_ = rest;
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
  bool is_cut() const { return shard_.degrees.tensor > 1; }

  // ---- operators ----

  void compute(OperatorId id, Phase phase) {
    if (phase == Phase::kForward) forward(id);
    if (phase == Phase::kBackwardInput) backward_input(id);
  }

  /// Every tensor rank has a summand of all tokens.
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
    for (const TensorId out : o.outputs) {
      Held made = value_of(out);
      if (makes_summands(o)) made.bytes = gathered(out);
      make(key(out), made);
    }
    if (const auto* attention = std::get_if<Attention>(&o.shape))
      make({id.value, Form::kSoftmaxSums},
           {local_tokens(shard_).gathered * Bytes(4) *
                ((attention->heads + shard_.degrees.tensor - 1) / shard_.degrees.tensor),
            MemoryClass::kActivations});
    const auto* add = std::get_if<ResidualAdd>(&o.shape);
    if (add != nullptr && add->dropout > 0)
      make({id.value, Form::kDropoutMask},
           {Bytes(local(o.outputs.front()).value / stored_element(shard_.dtype).value),
            MemoryClass::kActivations});
  }

  void backward_input(OperatorId id) {
    const Operator& o = op(id);
    if (std::holds_alternative<EmbeddingLookup>(o.shape)) return;
    if (const auto* add = std::get_if<ResidualAdd>(&o.shape); add != nullptr && add->dropout > 0) {
      meanwhile({local(o.outputs.front()), MemoryClass::kWorking}, [&] {
        for (const TensorId in : o.inputs) add_gradient(in);
      });
      return;
    }
    const auto* linear = std::get_if<Linear>(&o.shape);
    const bool partial = linear != nullptr && is_cut() && linear->cut == LinearCut::kColumn;
    const bool attends_gathered =
        std::holds_alternative<Attention>(o.shape) && shard_.degrees.context > 1;
    for (std::size_t i = 0; i < o.inputs.size(); ++i) {
      const TensorId in = o.inputs[i];
      const ActivationBuffer part = key(in, Form::kPartialGradient);
      if (attends_gathered && i > 0)
        make(part, {local(in) * shard_.degrees.context, MemoryClass::kWorking});
      else if (!partial)
        add_gradient(in);
      else if (!live_.contains(part))
        make(part, {gathered(in), MemoryClass::kWorking});
    }
  }

  // ---- collectives ----

  void communicate(OperatorId id, const Collective& collective) {
    const Operator& o = op(id);
    if (collective.axis == Axis::kContext) return over_context_ranks(o, collective);
    if (collective.axis != Axis::kTensor || std::holds_alternative<CrossEntropy>(o.shape) ||
        std::holds_alternative<TokenDispatch>(o.shape) ||
        std::holds_alternative<TokenCombine>(o.shape))
      return;
    const TensorId tensor = translated(collective, o);
    const bool before = std::find(o.inputs.begin(), o.inputs.end(), tensor) != o.inputs.end();
    if (collective.kind == CollectiveKind::kAllGather)
      return make(
          key(tensor, before ? Form::kGatheredValue
                             : (collective.phase == Phase::kForward ? Form::kGatheredValue
                                                                    : Form::kGatheredGradient)),
          {gathered(tensor), MemoryClass::kWorking});
    if (before) return sum_input_gradient(tensor, collective.kind);
    if (collective.kind == CollectiveKind::kAllReduce) return;
    const Held all = live_.at(key(tensor));
    drop(key(tensor));
    meanwhile(all, [&] { make(key(tensor), value_of(tensor)); });
  }

  /// All-reduced partial gradients become the gradient, or are added to it.
  void sum_input_gradient(TensorId tensor, CollectiveKind kind) {
    const ActivationBuffer part = key(tensor, Form::kPartialGradient);
    const Held all = live_.at(part);
    drop(part);
    if (kind == CollectiveKind::kAllReduce && !live_.contains(gradient(tensor)))
      make(gradient(tensor), all);
    else
      meanwhile(all, [&] { add_gradient(tensor); });
  }

  /// Keys and values one after the other, through a buffer in the order of ranks.
  void over_context_ranks(const Operator& o, const Collective& collective) {
    if (shard_.context != ContextAlgorithm::kAllGather) return;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      const TensorId in = o.inputs[i];
      const Held all{local(in) * shard_.degrees.context, MemoryClass::kCommunication};
      if (collective.kind == CollectiveKind::kAllGather) {
        meanwhile(all, [&] { make(key(in, Form::kGatheredValue), all); });
        continue;
      }
      const Held summands = live_.at(key(in, Form::kPartialGradient));
      drop(key(in, Form::kPartialGradient));
      meanwhile(summands, [&] { meanwhile(all, [&] { add_gradient(in); }); });
    }
  }

  /// The tensor that stands where the collective's stands in the first layer of the class.
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
  ShardShape shard_, whole_;  ///< whole_: of all tokens of the tensor group
  TensorId input_, output_;   ///< handed over at the ends; -1: none
  LogitBytes logits_;
  HeldBuffers live_;
  MemoryAmounts amounts_, peak_;
  MemoryAmounts arrives_, departs_;  ///< of the pass
};

}  // namespace

SliceMemory slice_memory(const ModelGraph& model, const Strategy& strategy,
                         const StageSlice& slice) {
  return StageBuffers(model, strategy, slice).run();
}

}  // namespace meshwright
