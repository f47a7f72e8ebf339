// Stages and the memory of their passes. Longer than 400 lines, because a single traversal of
// layers, parts and units fills all of StagesPass.
#include "core/lowering/stages.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/base/check.hpp"
#include "core/graph/activation_buffers.hpp"
#include "core/lowering/layer_holdings.hpp"
#include "core/lowering/memory.hpp"
#include "core/lowering/output_layer.hpp"
#include "core/lowering/units.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

/// A layer of a stage, and whether it is fully recomputed.
struct PlacedLayer {
  LayerId layer;
  std::int32_t layer_class = 0;
  bool fully_recomputed = false;
  bool is_wide = false;  ///< its GEMMs stay in 16 bits: Precision::wide_blocks
};

class StagesLowering {
 public:
  StagesLowering(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                 const TrainerMemory& memory)
      : plan_(plan), model_(model), cluster_(cluster) {
    pass_.trainer_memory = memory;
    if (memory.sends_slices && !plan.strategy.sequence_parallel)
      pass_.message_slices = plan.strategy.degrees.tensor;
    pass_.placement = placement_of(plan);
    pass_.groups = job_groups_of(plan.strategy, cluster);
  }

  StagesPass run() {
    lower_all_classes();
    if (output_barriers_of(plan_.strategy) > 0) shard_vocabulary_layers();
    lower_parts_of_model();
    share_works_of_stages();
    pass_.lowered.resident =
        resident_memory(pass_, plan_.strategy, device_of(cluster_, DeviceId(0)));
    reserve_by_kind();
    return std::move(pass_);
  }

 private:
  /// GPUs of compute capability 10.0 read fp8 operands in either layout.
  ShardShape quantized_shard() const {
    constexpr int kAnyLayout = 100;
    ShardShape shard = shard_shape_of(plan_.strategy);
    shard.reads_any_layout =
        device_of(cluster_, DeviceId(0)).compute_capability.value_or(0) >= kAnyLayout;
    return shard;
  }

  void lower_all_classes() {
    ShardShape shard = quantized_shard();
    std::vector<WorkPart>& parts = pass_.lowered.parts;
    parts.reserve(16);
    const LayerClassesCall call{model_, plan_.strategy, shard, pass_.groups, memory()};
    classes_ = lower_layer_classes(call, parts);
    if (!is_quantized(shard.dtype)) return;
    pass_.quantized_copies = quantized_copies(shard);
    shard.dtype = storage_dtype(shard.dtype);
    if (plan_.strategy.precision.wide_blocks > 0) wide_classes_ = lower_layer_classes(call, parts);
  }

  /// The table and the logits move from the first and the last part to all of them.
  void shard_vocabulary_layers() {
    const Strategy& strategy = plan_.strategy;
    const ShardShape shard = shard_shape_of(vocabulary_strategy(strategy));
    vocabulary_ = append_vocabulary_parts(model_, strategy, pass_.groups, pass_.lowered.parts);
    output_bytes_ = output_layer_bytes(model_, strategy);
    pass_.output_input = output_bytes_.input;
    for (LayerHoldings& held : classes_) {
      const LayerKind kind = model_.layers[held.first.index()].kind;
      if (kind == LayerKind::kBlock) continue;
      const std::int64_t words = local_vocabulary_parameters(model_, held.first, shard);
      held.parameters = local_parameters(model_, held.first, shard);
      held.parameters.dense -= words;
      vocabulary_parameters_ += words;
      if (kind != LayerKind::kHead) continue;
      held.kept -= output_bytes_.input;  // held by S and T
      held.kept_if_whole -= output_bytes_.input;
      held.kept_if_full -= output_bytes_.input;
      held.logits = {};
    }
  }

  const TrainerMemory& memory() const { return pass_.trainer_memory; }

  bool is_wide(LayerId id) const { return is_wide_block(model_, id, plan_.strategy); }

  void lower_parts_of_model() {
    const std::vector<std::vector<LayerId>> parts = layers_of_parts(plan_, model_);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      keeps_ = StageKeeps(model_, parts[part], plan_.strategy, static_cast<int>(part));
      place_layers(parts[part]);
      const int number = static_cast<int>(part);
      node_kind_ = kind_of_part(number);
      looks_up_shard_ = vocabulary_.lookup >= 0 && part > 0;
      works_of_part_.push_back(append_works(stage_, ends_of(number)));
      if (vocabulary_.scores >= 0) append_output_works(works_of_part_.back());
      if (memory_of_last_) pass_.memory.push_back(*memory_of_last_);
      note_parameters(number, part + 1 == parts.size());
      pass_.units.push_back(units_of(number));
      note_boundary(parts[part].back());
    }
  }

  void place_layers(std::span<const LayerId> layers) {
    stage_.clear();
    for (const LayerId id : layers)
      stage_.push_back(
          {id, model_.layers[id.index()].layer_class, keeps_.is_recomputed(id), is_wide(id)});
  }

  /// Whether the neighbors of a slice are on the same device.
  struct SliceEnds {
    bool previous_is_here = false, next_is_here = false;
  };
  SliceEnds ends_of(int part) const {
    const Placement& placement = pass_.placement;
    const auto& on = placement.device_of_stage;
    for (const std::vector<StageId>& route : placement.routes)
      for (std::size_t i = 0; i < route.size(); ++i) {
        if (placement.part_of_stage[route[i].index()] != part) continue;
        const auto is_here = [&](std::size_t other) {
          return on[route[other].index()] == on[route[i].index()];
        };
        return {i > 0 && is_here(i - 1), i + 1 < route.size() && is_here(i + 1)};
      }
    MW_CHECK(false);
  }

  const LayerHoldings& held(const PlacedLayer& layer) const {
    return (layer.is_wide ? wide_classes_ : classes_)[static_cast<std::size_t>(layer.layer_class)];
  }

  static void use(Work& work, std::int32_t part) {
    if (!work.parts.empty() && work.parts.back().part == part)
      ++work.parts.back().count;
    else
      work.parts.push_back({part, 1});
  }

  /// The units of a part and their works; empty if passes are not split.
  PartUnits units_of(int part) {
    if (!has_units(plan_.strategy, pass_)) return {};
    std::vector<std::vector<LocalParameter>> layers;
    for (const PlacedLayer& layer : stage_) layers.push_back(held(layer).parameter_list);
    const std::int64_t copy = pass_.parameters[static_cast<std::size_t>(part)].tied_copy;
    if (copy > 0) layers.back().push_back({copy, false});
    PartUnits made =
        cut_into_units(layers, table_among(layers, copy > 0), plan_.strategy, pass_.groups);
    const SliceEnds ends = ends_of(part);
    for (ParameterUnit& unit : made.units)
      unit.works = append_works(
          {stage_.data() + unit.first_layer, static_cast<std::size_t>(unit.layer_count)},
          {ends.previous_is_here || &unit != &made.units.front(),
           ends.next_is_here || &unit != &made.units.back()});
    const bool is_last = part + 1 == part_count(pass_.placement);
    const bool has_it = part == 0 && made.units.size() == 1;
    if (model_.tied_embeddings && is_last && copy == 0 && !has_it && plan_.strategy.zero >= 2)
      made.units.back().reads_table = local_tied_parameters(model_, shard_shape_of(plan_.strategy));
    return made;
  }

  /// The first parameter of the embedding, or the copy after the head's own parameters.
  std::optional<TablePlace> table_among(const std::vector<std::vector<LocalParameter>>& layers,
                                        bool has_copy) const {
    if (!model_.tied_embeddings) return std::nullopt;
    if (has_copy) return TablePlace{layers.size() - 1, layers.back().size() - 1};
    if (stage_.front().layer_class == model_.layers.front().layer_class) return TablePlace{0, 0};
    return std::nullopt;
  }

  StageWorks append_works(std::span<const PlacedLayer> layers, const SliceEnds& ends) {
    Work forward, backward, input, weight;
    forward.kind = TaskKind::kForward;
    backward.kind = TaskKind::kBackward;
    input.kind = TaskKind::kBackwardInput;
    weight.kind = TaskKind::kBackwardWeight;
    if (looks_up_shard_) use(forward, vocabulary_.lookup);
    for (const PlacedLayer& layer : layers) use(forward, held(layer).parts.forward);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      const LayerParts& parts = held(*layer).parts;
      if (recomputes(*layer)) {
        use(backward, parts.recompute);
        use(input, parts.recompute);
      }
      use(backward, parts.backward);
      use(input, parts.backward_input);
      use(weight, parts.backward_weight);
    }
    if (looks_up_shard_) use(backward, vocabulary_.lookup_backward);
    if (device_of(cluster_, DeviceId(0)).kernels == KernelLibrary::kOwn)
      memory_of_last_ = count_buffers(layers, ends, {forward, backward, input, weight});
    else
      fill_memory(layers, ends, {forward, backward, input, weight});
    std::vector<Work>& works = pass_.lowered.works;
    const WorkId first(works.size());
    for (Work* work : {&forward, &backward, &input, &weight}) {
      work->node_kind = node_kind_;
      works.push_back(std::move(*work));
    }
    return {first, WorkId(first.value + 1), WorkId(first.value + 2), WorkId(first.value + 3)};
  }

  void append_output_works(StageWorks& works) {
    const auto& [input, logits] = output_bytes_;
    Work scores, gradient;
    scores.kind = TaskKind::kForward;
    gradient.kind = TaskKind::kBackwardWeight;
    use(scores, vocabulary_.scores);
    use(gradient, vocabulary_.gradient);
    scores.acquired[MemoryClass::kActivations] = input;
    scores.acquired[MemoryClass::kLogits] = logits.values;
    gradient.transient[MemoryClass::kLogits] = logits.gradient;
    if (output_barriers_of(plan_.strategy) == 1) {
      scores.acquired[MemoryClass::kActivations] += input;
      scores.transient[MemoryClass::kLogits] = logits.gradient;
    } else {
      gradient.transient[MemoryClass::kWorking] = input;
    }
    gradient.released = scores.acquired;
    scores.node_kind = gradient.node_kind = node_kind_;
    works.output_scores = WorkId(pass_.lowered.works.size());
    works.output_gradient = WorkId(works.output_scores.value + 1);
    pass_.lowered.works.push_back(std::move(scores));
    pass_.lowered.works.push_back(std::move(gradient));
  }

  bool recomputes(const PlacedLayer& layer) const {
    return held(layer).parts.recompute >= 0 &&
           (layer.fully_recomputed || recomputes_operators(plan_.strategy.recompute.kind));
  }

  /// Saved activations live from forward to backward. If the backward pass is split, inputs of
  /// weight gradients live until W, and gradients of outputs live from I to W.
  struct PassWorks {
    Work &forward, &backward, &input, &weight;
  };
  void fill_memory(std::span<const PlacedLayer> layers, const SliceEnds& ends,
                   PassWorks works) const {
    auto& [forward, backward, input, weight] = works;
    constexpr MemoryClass kKept = MemoryClass::kActivations;
    constexpr MemoryClass kLogits = MemoryClass::kLogits;
    Bytes held_to_weight, recomputed_to_weight, gradients, logit_gradient;
    HeadPhases head;
    for (const PlacedLayer& layer : layers) {
      const LayerHoldings& h = held(layer);
      const Bytes kept = layer.fully_recomputed ? h.kept_if_full : h.kept;
      forward.acquired[kKept] += kept;
      head += phases_of(h);
      (layer.fully_recomputed ? recomputed_to_weight : held_to_weight) += h.needs.inputs;
      gradients += h.needs.output_gradients;
      logit_gradient += h.logits.gradient;
      // During a layer's backward: recomputed activations, and the input and output gradients of
      // its largest operator.
      const Bytes recomputed = std::max(Bytes(0), h.kept_if_whole - kept);
      widen(backward.transient, recomputed + h.largest * 2);
      widen(forward.transient, h.largest);
      widen(weight.transient, h.largest);
      widen(backward.transient, h.context.backward, MemoryClass::kCommunication);
      widen(forward.transient, h.context.forward, MemoryClass::kCommunication);
      if (memory().weight_gradients != WeightGradientMemory::kNone)
        widen(weight.transient, temporary_gradient(h), MemoryClass::kGradients);
    }
    forward.acquired[kLogits] = head.kept;
    if (memory().holds_sent_activations && sends_output(layers, ends))
      forward.acquired[MemoryClass::kCommunication] += boundary_bytes(layers.back().layer);
    backward.released = forward.acquired;
    input.transient = backward.transient;
    backward.transient = backward_peak(layers, head, backward.transient, forward.acquired[kKept]);
    forward.transient[kLogits] = head.forward - head.kept;

    input.acquired[kKept] = recomputed_to_weight + gradients;
    input.acquired[kLogits] = logit_gradient;
    input.released = forward.acquired;
    input.released[kKept] -= held_to_weight;
    weight.released = input.acquired;
    weight.released[kKept] += held_to_weight;
  }

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
  MemoryAmounts backward_peak(std::span<const PlacedLayer> layers, const HeadPhases& head,
                              const MemoryAmounts& working, Bytes activations) const {
    constexpr MemoryClass kLogits = MemoryClass::kLogits;
    Bytes of_blocks, of_head, of_table, head_input;
    for (const PlacedLayer& layer : layers) {
      const LayerHoldings& h = held(layer);
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

  /// Counted buffer by buffer, as in the executor.
  SliceMemory count_buffers(std::span<const PlacedLayer> layers, const SliceEnds& ends,
                            PassWorks works) const {
    if (layers.empty()) return {};
    StageSlice slice{.layers = {},
                     .keeps = keeps_,
                     .previous_is_here = ends.previous_is_here,
                     .next_is_here = ends.next_is_here};
    const auto steps = [&](std::int32_t part) {
      return &pass_.lowered.parts[static_cast<std::size_t>(part)].steps;
    };
    for (const PlacedLayer& layer : layers) {
      const LayerParts& parts = held(layer).parts;
      slice.layers.push_back({.layer = layer.layer,
                              .first_of_class = held(layer).first,
                              .forward = steps(parts.forward),
                              .recompute = recomputes(layer) ? steps(parts.recompute) : nullptr,
                              .backward = steps(parts.backward),
                              .backward_input = steps(parts.backward_input),
                              .backward_weight = steps(parts.backward_weight)});
    }
    const SliceMemory memory = slice_memory(model_, plan_.strategy, slice);
    const auto note = [](Work& work, const PassMemory& pass) {
      work.acquired = pass.acquired;
      work.released = pass.released;
      work.transient = pass.transient;
    };
    note(works.forward, memory.forward);
    note(works.backward, memory.backward);
    note(works.input, memory.backward_input);
    note(works.weight, memory.backward_weight);
    return memory;
  }

  static void widen(MemoryAmounts& transient, Bytes bytes,
                    MemoryClass memory_class = MemoryClass::kWorking) {
    Bytes& held = transient[memory_class];
    held = std::max(held, bytes);
  }

  /// The node type of the pipeline ranks that hold the part; check_plan() ensures that they agree.
  std::int32_t kind_of_part(int part) const {
    const std::vector<std::int32_t>& kinds = pass_.groups.kind_of_position;
    if (kinds.empty()) return -1;
    const auto& parts = pass_.placement.part_of_stage;
    const auto stage = std::find(parts.begin(), parts.end(), part) - parts.begin();
    return kinds[pass_.placement.device_of_stage[static_cast<std::size_t>(stage)].index()];
  }

  /// Reserved memory differs between device types.
  void reserve_by_kind() {
    const std::vector<std::int32_t>& kinds = pass_.groups.kind_of_position;
    for (std::size_t d = 0; d < kinds.size(); ++d) {
      const NodeGroup& group = cluster_.groups[static_cast<std::size_t>(kinds[d])];
      const DeviceModel& device = cluster_.devices.at(cluster_.nodes.at(group.node).device);
      pass_.lowered.resident[d][MemoryClass::kReserved] =
          reserved_memory(pass_, plan_.strategy, device);
    }
  }

  void note_parameters(int part, bool is_last) {
    PartParameters parameters;
    for (const PlacedLayer& layer : stage_) {
      parameters.local += held(layer).parameters;
      parameters.partial += held(layer).partial;
    }
    for (const PlacedLayer& layer : stage_)
      parameters.gradients_with_inputs += held(layer).gradients_with_inputs;
    for (const PlacedLayer& layer : stage_)
      if (is_block(held(layer)))
        for (const WeightMatrix& m : held(layer).matrices)
          if (std::find(parameters.matrices.begin(), parameters.matrices.end(), m) ==
              parameters.matrices.end())
            parameters.matrices.push_back(m);
    parameters.quantized = quantized_ranges(part);
    const std::vector<StageId>& route = pass_.placement.routes.front();
    const auto device = [&](StageId stage) {
      return pass_.placement.device_of_stage[stage.index()];
    };
    const bool apart = part > 0 && is_last && device(route.front()) != device(route.back());
    const bool replicated = pass_.placement.routes.size() > 1;
    parameters.local.dense += vocabulary_parameters_;
    if (apart && !replicated && vocabulary_.scores < 0) {
      parameters.tied_copy = local_tied_parameters(model_, shard_shape_of(plan_.strategy));
      parameters.local.dense += parameters.tied_copy;
    }
    pass_.parameters.push_back(parameters);
  }

  /// The matrices of quantized GEMMs in the stage.
  std::vector<ParameterRange> quantized_ranges(int part) const {
    std::vector<ParameterRange> ranges;
    LocalParameters next;
    for (const PlacedLayer& layer : stage_)
      for (const LocalParameter& parameter : held(layer).parameter_list) {
        std::int64_t& first = parameter.expert ? next.expert : next.dense;
        if (parameter.quantized) ranges.push_back({part, parameter.expert, first, parameter.count});
        first += parameter.count;
      }
    return ranges;
  }

  /// The output of a layer on one rank.
  Bytes boundary_bytes(LayerId last) const {
    const ShardShape shard = shard_shape_of(plan_.strategy);
    const std::int64_t width = model_.layers[last.index()].output_width;
    return stored_element(shard.dtype) * (local_tokens(shard).cut * width);
  }
  void note_boundary(LayerId last) { pass_.boundary.push_back(boundary_bytes(last)); }

  bool sends_output(std::span<const PlacedLayer> layers, const SliceEnds& ends) const {
    return !ends.next_is_here && layers.back().layer.index() + 1 < model_.layers.size();
  }

  void share_works_of_stages() {
    for (const int part : pass_.placement.part_of_stage)
      pass_.lowered.stages.push_back(works_of_part_[static_cast<std::size_t>(part)]);
  }

  const Plan& plan_;
  const ModelGraph& model_;
  const Cluster& cluster_;
  StagesPass pass_;
  std::vector<LayerHoldings> classes_, wide_classes_;  ///< by layer class
  std::vector<PlacedLayer> stage_;
  StageKeeps keeps_;  ///< of the stage
  // Vocabulary layers sharded over the pipeline ranks.
  VocabularyParts vocabulary_;
  OutputLayerBytes output_bytes_;
  std::int64_t vocabulary_parameters_ = 0;  ///< of every part
  bool looks_up_shard_ = false;             ///< the part is not the first
  std::int32_t node_kind_ = -1;
  std::vector<StageWorks> works_of_part_;
  std::optional<SliceMemory> memory_of_last_;  ///< works; none: buffers are not counted
};

}  // namespace

bool is_wide_block(const ModelGraph& model, LayerId layer, const Strategy& strategy) {
  const int wide = strategy.precision.wide_blocks;
  if (wide == 0 || !is_quantized(strategy.dtype)) return false;
  if (model.layers[layer.index()].kind != LayerKind::kBlock) return false;
  const int first_block = model.layers.front().kind == LayerKind::kBlock ? 0 : 1;
  const int block = layer.value - first_block;
  return block < wide || block >= block_count(model) - wide;
}

StagesPass lower_stages_pass(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                             const TrainerMemory& memory) {
  return StagesLowering(plan, model, cluster, memory).run();
}

LoweredStages lower_stages(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                           const TrainerMemory& memory) {
  return std::move(lower_stages_pass(plan, model, cluster, memory).lowered);
}

}  // namespace meshwright
