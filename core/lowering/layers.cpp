// Kernels and collectives of one layer, derived from the sharding of its operators.
//
// Tensor parallelism (Shoeybi et al., arXiv 1909.08053; with sequence parallelism Korthikanti et
// al., arXiv 2205.05198, section 4.2.2). A full tensor *enters* the tensor-parallel region once,
// even if several operators read it; the output of a row-parallel operator *leaves* it:
//             forward                       backward
//   enter     all-gather (SP), else none    reduce-scatter (SP), else all-reduce of its gradient;
//                                           with SP the input is gathered again for the weight
//                                           gradient, as it is not saved
//   leave     reduce-scatter (SP), else     all-gather of the gradient (SP), else none
//             all-reduce
// With ModelParallelism::tensor_overlap they overlap with the GEMMs of blocks. Context-parallel
// communication is in context.cpp, token dispatch and combine in experts.cpp. Without
// sequence parallelism, expert outputs (backward: gradients of dispatched tokens) are all-gathered
// over the tensor ranks.
#include "core/lowering/layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/lowering/context.hpp"
#include "core/lowering/experts.hpp"
#include "core/lowering/output_layer.hpp"
#include "core/operators/recompute_operators.hpp"
#include "core/plan/job_groups.hpp"

namespace meshwright {
namespace {

/// A full tensor read by sharded operators; operator indices start at the layer's first.
struct EnteringTensor {
  TensorId tensor;
  int first_reader = 0, last_reader = 0;
  Bytes gathered;  ///< all tokens as they are gathered
  Bytes gradient;  ///< their gradient
};

class LayerLowering {
 public:
  LayerLowering(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                const ShardShape& shard, const JobGroups& groups,
                bool overlaps_gradient_reduction = false)
      : model_(model),
        layer_(model.layers[layer.index()]),
        groups_(groups),
        shard_(shard),
        tokens_(local_tokens(shard_)),
        element_(stored_element(shard_.dtype).value),
        is_cut_(shard_.degrees.tensor > 1),
        overlaps_(strategy.model_parallelism.tensor_overlap && shard_.sequence_parallel &&
                  layer_.kind == LayerKind::kBlock),
        overlaps_gradients_(overlaps_ ||
                            (overlaps_gradient_reduction && layer_.kind == LayerKind::kBlock)),
        end_(layer_.operator_count) {
    if (is_cut_) find_entering_tensors();
  }

  /// Limits the passes below to the operators [begin, end) of the layer.
  void restrict_to(int begin, int end) {
    begin_ = begin;
    end_ = end;
  }

  void forward(std::vector<Step>& steps) {
    for (int i = begin_; i < end_; ++i) forward_of(i, steps);
  }

  /// Visits operators in reverse; appends input gradients, weight gradients or both.
  void backward(bool inputs, bool weights, std::vector<Step>& steps) {
    for (int i = end_ - 1; i >= begin_; --i) {
      if (inputs) backward_input_of(i, /*weights_follow=*/weights, steps);
      if (weights) backward_weight_of(i, /*inputs_before=*/inputs, steps);
    }
  }

  /// Repeats operators of the forward pass; `fractions` as in recomputed_fractions().
  void repeat(const std::vector<double>& fractions, std::vector<Step>& steps) {
    for (int i = 0; i < layer_.operator_count; ++i) {
      const double fraction = fractions[static_cast<std::size_t>(i)];
      const std::size_t begin = steps.size();
      if (fraction > 0) forward_of(i, steps);
      if (fraction > 0 && fraction < 1)
        for (std::size_t s = begin; s < steps.size(); ++s) shorten_product(fraction, steps[s]);
    }
  }

  /// The part repeated by selective recomputation: the attention core.
  void attention_forward(std::vector<Step>& steps) {
    for (int i = 0; i < layer_.operator_count; ++i)
      if (std::holds_alternative<Attention>(op(i).shape)) forward_of(i, steps);
  }

 private:
  const Operator& op(int i) const {
    return model_.operators[static_cast<std::size_t>(layer_.first_operator + i)];
  }
  /// Only some columns of y[m, n] = x[m, k] W[k, n].
  void shorten_product(double fraction, Step& step) const {
    auto* product = std::get_if<Kernel>(&step);
    if (product == nullptr || product->kind != KernelKind::kGemm) return;
    product->n = std::llround(static_cast<double>(product->n) * fraction);
    product->flops = product->flops * fraction;
    product->memory_traffic =
        stored_element(shard_.dtype) *
        (product->m * product->k + product->k * product->n + product->m * product->n);
  }
  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model_.tensors[id.index()].shape);
  }

  /// True for operators that are sharded over the tensor ranks and need a full input.
  bool runs_cut(const Operator& o) const {
    if (const auto* linear = std::get_if<Linear>(&o.shape))
      return linear->cut == LinearCut::kColumn;
    const bool mixes = std::holds_alternative<Attention>(o.shape) ||
                       std::holds_alternative<RotaryEmbedding>(o.shape);
    return mixes && !o.outputs.empty() &&
           activation(o.outputs.front()).cut == ActivationCut::kFeatures;
  }

  void find_entering_tensors() {
    for (int i = 0; i < layer_.operator_count; ++i) {
      if (!runs_cut(op(i))) continue;
      for (const TensorId id : op(i).inputs) {
        const ActivationTensor& tensor = activation(id);
        if (tensor.cut != ActivationCut::kTokens || tensor.routed) continue;
        const auto known = std::find_if(entering_.begin(), entering_.end(),
                                        [id](const EnteringTensor& e) { return e.tensor == id; });
        if (known != entering_.end())
          known->last_reader = i;
        else
          entering_.push_back({id, i, i, token_bytes(i, tensor.width), token_bytes(tensor.width)});
      }
    }
  }

  /// Output width of a row-parallel operator or a sharded table; empty for other operators.
  std::optional<std::int64_t> leaving_width(const Operator& o) const {
    if (!is_cut_) return std::nullopt;
    if (const auto* linear = std::get_if<Linear>(&o.shape))
      return linear->cut == LinearCut::kRow ? std::optional(linear->out) : std::nullopt;
    const auto* table = std::get_if<EmbeddingLookup>(&o.shape);
    if (table == nullptr || o.parameters.empty()) return std::nullopt;
    const auto& rows =
        std::get<ParameterTensor>(model_.tensors[o.parameters.front().index()].shape);
    return rows.cut == ParameterCut::kTensor ? std::optional(table->width) : std::nullopt;
  }

  Bytes token_bytes(std::int64_t width) const { return Bytes(tokens_.gathered * width * element_); }
  /// All tokens as operator `i` reads them: quantized before they are gathered, if it is.
  Bytes token_bytes(int i, std::int64_t width) const {
    if (!is_quantized(model_, OperatorId(layer_.first_operator + i), shard_))
      return token_bytes(width);
    return quantized_bytes(quantization_of(shard_.dtype, shard_.precision.fp8_recipe),
                           tokens_.gathered * width);
  }

  Served serve(int i, Phase phase, TensorId tensor) const {
    return {OperatorId(layer_.first_operator + i), phase, tensor};
  }
  void over_tensor(CollectiveKind kind, Bytes bytes, const Served& served, std::vector<Step>& steps,
                   const Overlap& overlap = {}) const {
    Collective collective;
    collective.kind = kind;
    collective.axis = Axis::kTensor;
    collective.bytes = bytes;
    collective.group = groups_.tensor;
    collective.overlap = overlap;
    append_collective(collective, served, steps);
  }

  // ---- communication overlapped with GEMMs ----

  bool overlaps_product(int i) const {
    return overlaps_ && std::holds_alternative<Linear>(op(i).shape);
  }
  bool overlaps_gradient(int i) const {
    return overlaps_gradients_ && std::holds_alternative<Linear>(op(i).shape);
  }
  /// Overlap with the GEMM that consumes or produces the data, in one chunk per tensor rank.
  Overlap in_pieces(int direction, int i) const {
    if (!overlaps_product(i)) return {};
    return {.kernels = direction, .pieces = shard_.degrees.tensor};
  }
  /// Overlap with an independent GEMM.
  Overlap as_a_whole(int direction, bool product_is_there, int i) const {
    if (!product_is_there || !overlaps_gradient(i)) return {};
    return {.kernels = direction, .pieces = 0};
  }

  void find_kernels(int i, Phase phase) {
    kernels_.clear();
    append_kernels(model_, OperatorId(layer_.first_operator + i), shard_, phase, kernels_);
  }
  void append(int i, Phase phase, std::vector<Step>& steps) {
    find_kernels(i, phase);
    steps.insert(steps.end(), kernels_.begin(), kernels_.end());
  }
  /// Number of casts before the product among the kernels found.
  std::ptrdiff_t cast_count() const {
    return std::ranges::find_if(kernels_,
                                [](const Kernel& k) { return k.routine != Routine::kCast; }) -
           kernels_.begin();
  }
  /// Appends the casts among the kernels found: sequence-parallel ranks gather quantized tokens.
  void append_casts(std::vector<Step>& steps) {
    const auto product = kernels_.begin() + cast_count();
    steps.insert(steps.end(), kernels_.begin(), product);
    kernels_.erase(kernels_.begin(), product);
  }
  /// Appends the other kernels found; splits a GEMM into chunks if communication overlaps it, each
  /// of which reads all weights.
  void append_in_pieces(int i, bool travels, std::vector<Step>& steps) {
    if (travels && overlaps_product(i)) {
      Kernel& product = kernels_.front();
      product.pieces = shard_.degrees.tensor;
      const std::int64_t weights = product.n * product.k;
      const Bytes read =
          is_quantized(product.dtype)
              ? quantized_bytes(quantization_of(product.dtype, shard_.precision.fp8_recipe),
                                weights)
              : stored_element(shard_.dtype) * weights;
      product.memory_traffic += read * std::int64_t{product.pieces - 1};
    }
    steps.insert(steps.end(), kernels_.begin(), kernels_.end());
  }

  bool reads_first(int i) const {
    return std::any_of(entering_.begin(), entering_.end(),
                       [i](const EnteringTensor& e) { return e.first_reader == i; });
  }

  // ---- forward ----

  void forward_of(int i, std::vector<Step>& steps) {
    const Operator& o = op(i);
    constexpr Phase kPhase = Phase::kForward;
    if (const auto* attention = std::get_if<Attention>(&o.shape)) {
      gather_entering(i, kPhase, steps);
      attend(*attention, i, kPhase, steps);
      return;
    }
    if (std::holds_alternative<TokenCombine>(o.shape))
      append_leave_experts(expert_call(i, kPhase, o.inputs.front()), steps);
    find_kernels(i, kPhase);
    append_casts(steps);
    gather_entering(i, kPhase, steps);
    const std::optional<std::int64_t> leaving = leaving_width(o);
    append_in_pieces(i, leaving || reads_first(i), steps);
    if (std::holds_alternative<TokenDispatch>(o.shape))
      append_reach_experts(expert_call(i, kPhase, o.outputs.front()), steps);
    if (const auto* combine = std::get_if<TokenCombine>(&o.shape))
      gather_without_sequence_parallel(combine->width, serve(i, kPhase, o.outputs.front()), steps);
    if (leaving)
      over_tensor(
          shard_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
          token_bytes(*leaving), serve(i, kPhase, o.outputs.front()), steps, in_pieces(-1, i));
    if (std::holds_alternative<CrossEntropy>(o.shape) && !o.inputs.empty() &&
        activation(o.inputs.front()).cut == ActivationCut::kFeatures)
      reduce_loss(serve(i, kPhase, o.inputs.front()), steps);
  }

  void gather_entering(int i, Phase phase, std::vector<Step>& steps) const {
    if (!shard_.sequence_parallel) return;
    for (const EnteringTensor& e : entering_)
      if (e.first_reader == i)
        over_tensor(CollectiveKind::kAllGather, e.gathered, serve(i, phase, e.tensor), steps,
                    in_pieces(+1, i));
  }

  /// All-reduces per token, in fp32: largest logit, then sum of exponentials and the target's
  /// logit.
  void reduce_loss(const Served& served, std::vector<Step>& steps) const {
    const Bytes one_per_token(tokens_.gathered * kFloat32Bytes);
    over_tensor(CollectiveKind::kAllReduce, one_per_token, served, steps);
    over_tensor(CollectiveKind::kAllReduce, one_per_token * 2, served, steps);
  }

  void attend(const Attention& attention, int i, Phase phase, std::vector<Step>& steps) {
    find_kernels(i, phase);
    append_attention({attention, serve(i, phase, TensorId(-1)), shard_, groups_.context}, kernels_,
                     steps);
  }

  ExpertCall expert_call(int i, Phase phase, TensorId rows) const {
    return {activation(rows), serve(i, phase, rows), shard_, groups_};
  }

  void gather_without_sequence_parallel(std::int64_t width, const Served& served,
                                        std::vector<Step>& steps) const {
    if (!shard_.sequence_parallel)
      over_tensor(CollectiveKind::kAllGather, token_bytes(width), served, steps);
  }

  // ---- backward ----

  void backward_input_of(int i, bool weights_follow, std::vector<Step>& steps) {
    const Operator& o = op(i);
    constexpr Phase kPhase = Phase::kBackwardInput;
    const bool gathers = leaving_width(o) && shard_.sequence_parallel;
    find_kernels(i, kPhase);
    append_casts(steps);
    if (gathers)
      over_tensor(CollectiveKind::kAllGather, token_bytes(i, *leaving_width(o)),
                  serve(i, kPhase, o.outputs.front()), steps, in_pieces(+1, i));
    if (std::holds_alternative<TokenDispatch>(o.shape))
      append_leave_experts(expert_call(i, kPhase, o.outputs.front()), steps);
    if (const auto* attention = std::get_if<Attention>(&o.shape))
      attend(*attention, i, kPhase, steps);
    else
      append_in_pieces(i, gathers, steps);
    if (std::holds_alternative<TokenCombine>(o.shape))
      append_reach_experts(expert_call(i, kPhase, o.inputs.front()), steps);
    if (const auto* dispatch = std::get_if<TokenDispatch>(&o.shape))
      gather_without_sequence_parallel(dispatch->width, serve(i, kPhase, o.inputs.front()), steps);
    if (weights_follow && overlaps_gradient(i)) gather_again(i, true, steps);
    find_kernels(i, Phase::kBackwardWeight);
    const int until_product = 1 + static_cast<int>(cast_count());
    hand_back_entering(i, weights_follow ? until_product : 0, steps);
  }

  /// Gradients of tensors that entered here: partial sums are reduced over the tensor ranks, next
  /// to the following `steps_beside` steps, up to the GEMM of the weight gradient.
  void hand_back_entering(int i, int steps_beside, std::vector<Step>& steps) const {
    for (const EnteringTensor& e : entering_)
      if (e.first_reader == i)
        over_tensor(
            shard_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
            e.gradient, serve(i, Phase::kBackwardInput, e.tensor), steps,
            as_a_whole(+steps_beside, steps_beside > 0, i));
  }

  /// Re-gathers inputs for the weight gradient, as gathered inputs are not saved. In reverse order
  /// the last reader comes first and gathers for all readers.
  void gather_again(int i, bool beside_product, std::vector<Step>& steps) const {
    if (!shard_.sequence_parallel || !std::holds_alternative<Linear>(op(i).shape)) return;
    for (const EnteringTensor& e : entering_)
      if (e.last_reader == i)
        over_tensor(CollectiveKind::kAllGather, e.gathered,
                    serve(i, Phase::kBackwardWeight, e.tensor), steps,
                    as_a_whole(-1, beside_product, i));
  }

  void backward_weight_of(int i, bool inputs_before, std::vector<Step>& steps) {
    if (!(inputs_before && overlaps_gradient(i))) gather_again(i, false, steps);
    append(i, Phase::kBackwardWeight, steps);
  }

  const ModelGraph& model_;
  const Layer& layer_;
  const JobGroups& groups_;
  ShardShape shard_;
  LocalTokens tokens_;
  std::int64_t element_;
  bool is_cut_, overlaps_, overlaps_gradients_;
  int begin_ = 0, end_;  ///< operators of the passes
  std::vector<EnteringTensor> entering_;
  std::vector<Kernel> kernels_;  ///< reused to avoid allocations
};

std::string part_name(const Layer& layer, std::string_view pass) {
  constexpr std::array<std::string_view, 3> kKinds{"embedding", "block", "head"};
  std::string name(kKinds[static_cast<std::size_t>(layer.kind)]);
  // Class 0 is the embedding; block classes start at 1, and a single block class has no number.
  if (layer.kind == LayerKind::kBlock && layer.layer_class > 1)
    name += std::to_string(layer.layer_class);
  name += '.';
  name += pass;
  return name;
}

std::int32_t append_part(std::vector<WorkPart>& parts, WorkPart part) {
  parts.push_back(std::move(part));
  return static_cast<std::int32_t>(parts.size() - 1);
}

}  // namespace

void append_collective(const Collective& collective, const Served& served,
                       std::vector<Step>& steps) {
  if (collective.group.ranks == 1) return;
  Collective made = collective;
  made.source = served.op;
  made.tensor = served.tensor;
  made.phase = served.phase;
  steps.emplace_back(made);
}

LayerParts append_layer_parts(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                              const ShardShape& shard, const JobGroups& groups,
                              const TrainerMemory& memory, std::vector<WorkPart>& parts) {
  LayerLowering lowering(model, layer, strategy, shard, groups, memory.overlaps_gradient_reduction);
  const Layer& l = model.layers[layer.index()];
  if (l.kind == LayerKind::kHead && output_barriers_of(strategy) > 0)
    lowering.restrict_to(0, l.operator_count - kOutputOperators);
  const auto part = [&](std::string_view pass, auto&& fill) {
    WorkPart made;
    made.name = part_name(l, pass);
    made.steps.reserve(4 * static_cast<std::size_t>(l.operator_count));
    fill(made.steps);
    return append_part(parts, std::move(made));
  };
  LayerParts made;
  made.forward = part("F", [&](auto& steps) { lowering.forward(steps); });
  made.backward = part("B", [&](auto& steps) { lowering.backward(true, true, steps); });
  made.backward_input = part("I", [&](auto& steps) { lowering.backward(true, false, steps); });
  made.backward_weight = part("W", [&](auto& steps) { lowering.backward(false, true, steps); });
  if (l.kind != LayerKind::kBlock) return made;

  const RecomputeKind kind = strategy.recompute.kind;
  if (kind == RecomputeKind::kFull || kind == RecomputeKind::kBlocks)
    made.recompute = part("recompute", [&](auto& steps) { lowering.forward(steps); });
  // Fused attention always recomputes its scores, so selective recomputation changes nothing.
  if (kind == RecomputeKind::kSelective && strategy.attention == AttentionAlgorithm::kStandard)
    made.recompute = part("recompute", [&](auto& steps) { lowering.attention_forward(steps); });
  if (kind == RecomputeKind::kModules || kind == RecomputeKind::kTorchSelective) {
    const std::vector<double> fractions = recomputed_fractions(model, layer, strategy.recompute);
    if (std::any_of(fractions.begin(), fractions.end(), [](double f) { return f > 0; }))
      made.recompute = part("recompute", [&](auto& steps) { lowering.repeat(fractions, steps); });
  }
  if (made.recompute >= 0) parts[static_cast<std::size_t>(made.recompute)].recompute = true;
  return made;
}

/// With one barrier, S also computes the input gradient (Yeung et al., algorithm 2).
VocabularyParts append_vocabulary_parts(const ModelGraph& model, const Strategy& strategy,
                                        const JobGroups& groups, std::vector<WorkPart>& parts) {
  const Strategy sharded = vocabulary_strategy(strategy);
  const auto part = [&](std::string_view name, auto&& fill) {
    WorkPart made;
    made.name = name;
    fill(made.steps);
    return append_part(parts, std::move(made));
  };
  VocabularyParts made;
  const auto lookup = [&](Phase phase) {
    return [&, phase](std::vector<Step>& steps) {
      std::vector<Kernel> kernels;
      append_kernels(model, OperatorId(model.layers.front().first_operator),
                     shard_shape_of(sharded), phase, kernels);
      steps.assign(kernels.begin(), kernels.end());
    };
  };
  made.lookup = part("embedding-shard.F", lookup(Phase::kForward));
  made.lookup_backward = part("embedding-shard.B", lookup(Phase::kBackwardWeight));

  const LayerId head(model.layers.size() - 1);
  LayerLowering output(model, head, sharded, shard_shape_of(sharded), groups);
  const int count = model.layers[head.index()].operator_count;
  output.restrict_to(count - kOutputOperators, count);
  const bool gradient_in_scores = output_barriers_of(strategy) == 1;
  made.scores = part("head.S", [&](auto& steps) {
    output.forward(steps);
    if (gradient_in_scores) output.backward(true, false, steps);
  });
  made.gradient =
      part("head.T", [&](auto& steps) { output.backward(!gradient_in_scores, true, steps); });
  return made;
}

}  // namespace meshwright
