#include "core/lowering/work_programs.hpp"

#include <algorithm>

#include "core/base/check.hpp"

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

/// The tensor that a layer hands to the next one; -1: none.
TensorId output_of_layer(const ModelGraph& model, std::int32_t layer) {
  if (layer < 0 || layer + 1 >= static_cast<std::int32_t>(model.layers.size())) return TensorId(-1);
  return operators_of(model, LayerId(layer)).back().outputs.front();
}

/// Describes the passes of one micro-batch over a slice, one after another.
class SliceDescription {
 public:
  SliceDescription(const ModelGraph& model, const SliceLayers& slice)
      : model_(model),
        slice_(slice),
        live_(model, slice.layers.front().call.shard),
        input_(output_of_layer(model, slice.layers.front().layer.value - 1)),
        output_(output_of_layer(model, slice.layers.back().layer.value)) {}

  SlicePasses run() {
    SlicePasses passes;
    HeldBuffers held;
    if (input_.value >= 0 && slice_.previous_is_here)
      held[LiveBuffers::key(input_)] = live_.value_of(input_);
    passes.forward = pass(TaskKind::kForward, held);
    held = live_.all();
    if (slice_.next_is_here) held.erase(LiveBuffers::key(output_));
    if (output_.value >= 0 && slice_.next_is_here)
      held[LiveBuffers::gradient(output_)] = live_.gradient_of(output_);
    passes.backward = pass(TaskKind::kBackward, held);
    passes.backward_input = pass(TaskKind::kBackwardInput, held);
    held = live_.all();
    held.erase(LiveBuffers::gradient(input_));
    passes.backward_weight = pass(TaskKind::kBackwardWeight, held);
    return passes;
  }

 private:
  SlicePass pass(TaskKind kind, const HeldBuffers& before) {
    made_ = {};
    const bool forward_order = kind == TaskKind::kForward;
    made_.program.lowest_layer = slice_.layers.front().layer;
    made_.program.begins_pass = forward_order ? slice_.is_first : slice_.is_last;
    made_.program.ends_pass = forward_order ? slice_.is_last : slice_.is_first;
    steps_.clear();
    live_.start_from(before, steps_, made_.program.buffers);
    arrive(kind);
    if (forward_order)
      for (const SliceLayer& layer : slice_.layers) forward(layer);
    else
      for (auto layer = slice_.layers.rbegin(); layer != slice_.layers.rend(); ++layer)
        backward(*layer, kind);
    PassMemory& memory = made_.memory;
    memory.transient = live_.peak();
    depart(kind);
    memory.acquired = difference(live_.all(), before);
    memory.released = difference(before, live_.all());
    memory.transient -= sum_of(before);
    memory.transient -= memory.acquired;
    return std::move(made_);
  }

  // ---- layers ----

  void forward(const SliceLayer& layer) {
    const LayerPrograms programs(layer.call, layer.layer);
    live_.continue_with(layer.call.shard);
    append(layer.layer, layer.parts.forward, Visit::kForward,
           [&](const LayerPrograms::Sink& sink) { programs.forward(sink); });
  }

  void backward(const SliceLayer& layer, TaskKind kind) {
    const LayerPrograms programs(layer.call, layer.layer);
    live_.continue_with(layer.call.shard);
    const LayerParts& parts = layer.parts;
    if (kind == TaskKind::kBackwardWeight)
      return append(layer.layer, parts.backward_weight, Visit::kBackwardWeight,
                    [&](const auto& sink) { programs.backward(false, true, sink); });
    if (layer.recomputes)
      append(layer.layer, parts.recompute, Visit::kRecompute,
             [&](const auto& sink) { programs.recompute(sink); });
    const bool both = kind == TaskKind::kBackward;
    append(layer.layer, both ? parts.backward : parts.backward_input,
           both ? Visit::kBackward : Visit::kBackwardInput,
           [&](const auto& sink) { programs.backward(true, both, sink); });
  }

  /// The steps of the layer correspond to those of its class's part, one by one.
  template <class Describe>
  void append(LayerId layer, std::int32_t part, Visit visit, const Describe& describe) {
    const std::size_t first = steps_.size();
    describe(LayerPrograms::Sink{
        .steps = steps_, .buffers = &live_, .after_operator = [&](OperatorId op) {
          for (const BufferKey& done : released_after(model_, *slice_.saved, layer, op, visit))
            live_.release(done);
        }});
    for (std::size_t i = first; i < steps_.size(); ++i) {
      ProgramStep step;
      step.layer = layer;
      step.part = part;
      step.step = static_cast<std::int32_t>(i - first);
      if (const auto* collective = std::get_if<Collective>(&steps_[i])) {
        step.op = collective->source;
        step.tensor = collective->tensor;
      } else {
        step.op = std::get<Kernel>(steps_[i]).source;
      }
      made_.program.steps.push_back(step);
    }
  }

  // ---- the ends of the slice ----

  /// Acquires the tensors received from another device.
  void arrive(TaskKind kind) {
    if (kind == TaskKind::kForward && input_.value >= 0 && !slice_.previous_is_here)
      receive(LiveBuffers::key(input_), live_.value_of(input_));
    const bool begins = kind == TaskKind::kBackward || kind == TaskKind::kBackwardInput;
    if (begins && output_.value >= 0 && !slice_.next_is_here)
      receive(LiveBuffers::gradient(output_), live_.gradient_of(output_));
  }
  void receive(const BufferKey& buffer, const HeldBuffer& held) {
    made_.memory.arrives[held.what] += held.bytes;
    live_.acquire(buffer, held);
  }

  /// Releases the tensors sent to another device, and at the end of the backward pass all others.
  void depart(TaskKind kind) {
    if (kind == TaskKind::kForward && output_.value >= 0 && !slice_.next_is_here &&
        !slice_.saved->has(output_))
      send(LiveBuffers::key(output_));
    if (kind == TaskKind::kForward) return;
    if (!slice_.previous_is_here) send(LiveBuffers::gradient(input_));
    if (kind == TaskKind::kBackwardInput) return;
    const HeldBuffers rest = live_.all();
    for (const auto& [buffer, held] : rest)
      if (buffer != LiveBuffers::gradient(input_)) live_.release(buffer);
  }
  void send(const BufferKey& buffer) {
    if (!live_.has(buffer)) return;
    const HeldBuffer sent = live_.consume(buffer);
    made_.memory.departs[sent.what] += sent.bytes;
  }

  const ModelGraph& model_;
  const SliceLayers& slice_;
  LiveBuffers live_;
  TensorId input_, output_;  ///< boundary tensors of the slice; -1: none
  SlicePass made_;           ///< the pass being described
  std::vector<Step> steps_;  ///< its steps
};

}  // namespace

SlicePasses slice_passes(const ModelGraph& model, const SliceLayers& slice) {
  return SliceDescription(model, slice).run();
}

}  // namespace meshwright
