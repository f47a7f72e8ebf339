// Memory of passes in other programs than our executor, by formulas: activations are acquired by
// forward and released by backward passes.
#include <algorithm>
#include <array>

#include "core/lowering/passes.hpp"
#include "core/lowering/works.hpp"

namespace meshwright {
namespace {

class SliceActivations {
 public:
  SliceActivations(LoweringContext& context, const LayerSlice& slice)
      : context_(context),
        model_(context.model),
        slice_(slice),
        layers_(layers_of(context, slice)),
        works_{work(slice.works.forward), work(slice.works.backward),
               work(slice.works.backward_input), work(slice.works.backward_weight)} {}

  /// Saved activations live from forward to backward. If the backward pass is split, inputs of
  /// weight gradients live until W, and gradients of outputs live from I to W.
  void estimate() {
    auto& [forward, backward, input, weight] = works_;
    constexpr MemoryClass kKept = MemoryClass::kActivations;
    constexpr MemoryClass kLogits = MemoryClass::kLogits;
    Bytes held_to_weight, recomputed_to_weight, gradients, logit_gradient;
    HeadPhases head;
    for (const PlacedLayer& layer : layers_) {
      const LayerHoldings& h = context_.held(layer);
      const Bytes kept = layer.fully_recomputed ? h.kept_if_full : h.kept;
      forward.acquired[kKept] += kept;
      head += phases_of(h);
      (layer.fully_recomputed ? recomputed_to_weight : held_to_weight) += h.needs.inputs;
      gradients += h.needs.output_gradients;
      logit_gradient += h.logits.gradient;
      widen(backward.transient, h.working_backward(kept));
      widen(forward.transient, h.working_forward());
      widen(weight.transient, h.largest);
      widen(backward.transient, h.context.backward, MemoryClass::kCommunication);
      widen(forward.transient, h.context.forward, MemoryClass::kCommunication);
      if (memory().weight_gradients != WeightGradientMemory::kNone)
        widen(weight.transient, temporary_gradient(h), MemoryClass::kGradients);
    }
    forward.acquired[kLogits] = head.kept;
    if (memory().holds_sent_activations && sends_output())
      forward.acquired[MemoryClass::kCommunication] += output_bytes(context_, layers_.back().layer);
    backward.released = forward.acquired;
    input.transient = backward.transient;
    backward.transient = backward_peak(head, backward.transient, forward.acquired[kKept]);
    forward.transient[kLogits] = head.forward - head.kept;

    input.acquired[kKept] = recomputed_to_weight + gradients;
    input.acquired[kLogits] = logit_gradient;
    input.released = forward.acquired;
    input.released[kKept] -= held_to_weight;
    weight.released = input.acquired;
    weight.released[kKept] += held_to_weight;
  }

 private:
  Work& work(WorkId id) { return context_.graph().works[id.index()]; }
  const TrainerMemory& memory() const { return context_.options.memory; }

  /// Copies of the logits in the moments of the loss, and the gradient that the head receives.
  struct HeadPhases {
    Bytes forward, kept, backward, gradient;
    HeadPhases& operator+=(const HeadPhases& other) {
      forward += other.forward;
      kept += other.kept;
      backward += other.backward;
      gradient += other.gradient;
      return *this;
    }
  };
  HeadPhases phases_of(const LayerHoldings& h) const {
    const LossMemory& loss = h.logits.sharded ? memory().sharded_loss : memory().loss;
    const auto bytes = [&](const LossCopies& copies) {
      return h.logits.values * copies.fp32 + h.logits.gradient * copies.stored;
    };
    return {bytes(loss.forward), bytes(loss.kept), bytes(loss.backward), h.logits.gradient};
  }

  bool is_block(const LayerHoldings& h) const {
    return model_.layers[h.first.index()].kind == LayerKind::kBlock;
  }
  /// Of the largest matrix, until it has been added to the gradient buffer.
  Bytes temporary_gradient(const LayerHoldings& h) const {
    const WeightGradientMemory how = memory().weight_gradients;
    if (how == WeightGradientMemory::kNone) return Bytes(0);
    if (how == WeightGradientMemory::kCachedByShape && is_block(h)) return Bytes(0);
    return h.largest_matrix_gradient;
  }

  /// What a backward pass needs at its peak, in addition to what it holds at its start. `working`:
  /// of the layer that needs most.
  ///   loss     gradient of the logits
  ///   head     that gradient in the stored type, gradients of the weights and of the input
  ///   blocks   working set of a block; the logits are freed
  ///   table    gradient of the embedding; all activations are freed
  MemoryAmounts backward_peak(const HeadPhases& head, const MemoryAmounts& working,
                              Bytes activations) const {
    constexpr MemoryClass kLogits = MemoryClass::kLogits;
    Bytes of_blocks, of_head, of_table, head_input;
    for (const PlacedLayer& layer : layers_) {
      const LayerHoldings& h = context_.held(layer);
      const bool has_loss = h.logits.values.value > 0;
      Bytes& gradient = has_loss ? of_head : of_blocks;
      gradient = std::max(gradient, temporary_gradient(h));
      head_input = std::max(head_input, h.head_input);
      if (memory().weight_gradients != WeightGradientMemory::kNone)
        of_table = std::max(of_table, h.table_gradient);
    }
    if (!memory().frees_logits_before_blocks) {
      MemoryAmounts sum = working;
      sum[kLogits] = head.backward - head.kept;
      sum[MemoryClass::kGradients] = std::max({of_blocks, of_head, of_table});
      return sum;
    }
    std::array<MemoryAmounts, 4> phases{};
    auto& [at_loss, at_head, at_blocks, at_table] = phases;
    at_loss[kLogits] = head.backward - head.kept;
    at_head[kLogits] = head.gradient - head.kept;
    at_head[MemoryClass::kGradients] = of_head;
    at_head[MemoryClass::kWorking] = head_input;
    at_blocks = working;
    at_blocks[kLogits] = Bytes(0) - head.kept;
    at_blocks[MemoryClass::kGradients] = of_blocks;
    at_table[kLogits] = Bytes(0) - head.kept;
    at_table[MemoryClass::kActivations] = Bytes(0) - activations;
    at_table[MemoryClass::kGradients] = of_table;
    return *std::max_element(
        phases.begin(), phases.end(),
        [](const MemoryAmounts& a, const MemoryAmounts& b) { return total(a) < total(b); });
  }

  static void widen(MemoryAmounts& transient, Bytes bytes,
                    MemoryClass memory_class = MemoryClass::kWorking) {
    Bytes& held = transient[memory_class];
    held = std::max(held, bytes);
  }

  bool sends_output() const {
    return !slice_.next_is_here && layers_.back().layer.index() + 1 < model_.layers.size();
  }

  LoweringContext& context_;
  const ModelGraph& model_;
  const LayerSlice& slice_;
  std::span<const PlacedLayer> layers_;
  struct {
    Work &forward, &backward, &input, &weight;
  } works_;
};

}  // namespace

void estimate_activations(LoweringContext& context) {
  if (context.device().kernels == KernelLibrary::kOwn) return;  // counted by describe_programs()
  for (const LayerSlice& slice : context.slices) SliceActivations(context, slice).estimate();
}

}  // namespace meshwright
