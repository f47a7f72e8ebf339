// Kernels and collectives of one layer, derived from how its operators are cut.
//
// Tensor parallelism (Shoeybi et al., arXiv 1909.08053; with sequence parallelism Korthikanti et
// al., arXiv 2205.05198, section 4.2.2). A whole tensor *enters* the cut region once, however many
// cut operators read it; the output of a row cut *leaves* it:
//             forward                       backward
//   enter     all-gather (SP), else none    reduce-scatter (SP), else all-reduce of its gradient;
//                                           with SP the input is gathered again for the weight
//                                           gradient, as it is not kept
//   leave     reduce-scatter (SP), else     all-gather of the gradient (SP), else none
//             all-reduce
// Context parallelism: keys and values are gathered before attention, and again in the backward
// pass since only the local part is kept; their gradients are reduce-scattered (Llama 3, arXiv
// 2407.21783, section 3.3.2).
// Experts: tokens travel by all-to-all over the expert ranks, forward and backward, balanced. Each
// tensor rank sends 1/tensor of the tokens; without sequence parallelism the results are gathered
// over the tensor ranks afterwards, and the gradient of the dispatched tokens in the backward pass.
// Expert-tensor ranks gather the rows in front of the experts and reduce-scatter them behind.
#include <algorithm>
#include <array>

#include "core/lower_passes.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kFloat32Bytes = 4;
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A whole tensor that cut operators read; operators count from the layer's first.
struct EnteringTensor {
  TensorId tensor;
  int first_reader = 0, last_reader = 0;
  Bytes bytes;  ///< of all tokens
};

class LayerLowering {
 public:
  LayerLowering(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                const JobGroups& groups)
      : model_(model),
        layer_(model.layers[layer.index()]),
        groups_(groups),
        shard_(shard_shape_of(strategy)),
        tokens_(local_tokens(shard_)),
        element_(stored_element(shard_.dtype).value),
        is_cut_(shard_.degrees.tensor > 1) {
    if (is_cut_) find_entering_tensors();
  }

  void forward(std::vector<Step>& steps) {
    for (int i = 0; i < layer_.operator_count; ++i) forward_of(i, steps);
  }

  /// Operators in reverse; input gradients, weight gradients or both of each.
  void backward(bool inputs, bool weights, std::vector<Step>& steps) {
    for (int i = layer_.operator_count - 1; i >= 0; --i) {
      if (inputs) backward_input_of(i, steps);
      if (weights) backward_weight_of(i, steps);
    }
  }

  /// What selective recomputation does again: the attention core.
  void attention_forward(std::vector<Step>& steps) {
    for (int i = 0; i < layer_.operator_count; ++i)
      if (std::holds_alternative<Attention>(op(i).shape)) forward_of(i, steps);
  }

 private:
  const Operator& op(int i) const {
    return model_.operators[static_cast<std::size_t>(layer_.first_operator + i)];
  }
  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model_.tensors[id.index()].shape);
  }

  /// True for operators whose tensor ranks each do a part and need all of a whole input for it.
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
          entering_.push_back({id, i, i, token_bytes(tensor.width)});
      }
    }
  }

  /// Width of what a row cut or a cut table hands out; nothing for other operators.
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

  /// Whom a collective serves.
  struct Served {
    int op = 0;  ///< counted from the layer's first
    Phase phase = Phase::kForward;
    TensorId tensor{-1};
  };
  void communicate(CollectiveKind kind, Axis axis, Bytes bytes, const GroupShape& group,
                   const Served& served, std::vector<Step>& steps) const {
    if (group.ranks == 1) return;
    steps.emplace_back(Collective{kind, axis, bytes, group,
                                  OperatorId(layer_.first_operator + served.op), served.tensor,
                                  served.phase});
  }
  void over_tensor(CollectiveKind kind, Bytes bytes, const Served& served,
                   std::vector<Step>& steps) const {
    communicate(kind, Axis::kTensor, bytes, groups_.tensor, served, steps);
  }

  void append(int i, Phase phase, std::vector<Step>& steps) {
    kernels_.clear();
    append_kernels(model_, OperatorId(layer_.first_operator + i), shard_, phase, kernels_);
    steps.insert(steps.end(), kernels_.begin(), kernels_.end());
  }

  // ---- forward ----

  void forward_of(int i, std::vector<Step>& steps) {
    const Operator& o = op(i);
    constexpr Phase kPhase = Phase::kForward;
    if (shard_.sequence_parallel)
      for (const EnteringTensor& e : entering_)
        if (e.first_reader == i)
          over_tensor(CollectiveKind::kAllGather, e.bytes, {i, kPhase, e.tensor}, steps);
    if (const auto* attention = std::get_if<Attention>(&o.shape))
      gather_keys_and_values(*attention, CollectiveKind::kAllGather, {i, kPhase, {}}, steps);
    if (const auto* combine = std::get_if<TokenCombine>(&o.shape))
      leave_experts(rows_of(*combine), {i, kPhase, o.inputs.front()}, steps);
    append(i, kPhase, steps);
    if (const auto* dispatch = std::get_if<TokenDispatch>(&o.shape))
      reach_experts(rows_of(*dispatch), {i, kPhase, o.outputs.front()}, steps);
    if (const auto* combine = std::get_if<TokenCombine>(&o.shape))
      gather_without_sequence_parallel(combine->width, {i, kPhase, o.outputs.front()}, steps);
    if (const auto width = leaving_width(o))
      over_tensor(
          shard_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
          token_bytes(*width), {i, kPhase, o.outputs.front()}, steps);
    if (std::holds_alternative<CrossEntropy>(o.shape) && !o.inputs.empty() &&
        activation(o.inputs.front()).cut == ActivationCut::kFeatures)
      reduce_loss({i, kPhase, o.inputs.front()}, steps);
  }

  /// Largest logit, then sum of exponentials together with the target's logit, per token in fp32.
  void reduce_loss(const Served& served, std::vector<Step>& steps) const {
    const Bytes one_per_token(tokens_.gathered * kFloat32Bytes);
    over_tensor(CollectiveKind::kAllReduce, one_per_token, served, steps);
    over_tensor(CollectiveKind::kAllReduce, one_per_token * 2, served, steps);
  }

  void gather_keys_and_values(const Attention& attention, CollectiveKind kind, Served served,
                              std::vector<Step>& steps) const {
    const std::int64_t heads = divide_up(attention.key_value_heads, shard_.degrees.tensor);
    const std::int64_t width = heads * (attention.key_size + attention.value_size);
    served.tensor = TensorId(-1);
    communicate(kind, Axis::kContext,
                Bytes(shard_.sequences * shard_.sequence_length * width * element_),
                groups_.context, served, steps);
  }

  /// What one rank hands to the experts of its tokens, or gets back from them.
  template <class Routing>
  Bytes rows_of(const Routing& routing) const {
    return Bytes(tokens_.dispatched * routing.experts_per_token * routing.width * element_);
  }
  /// Rows to the ranks of their experts (or their gradients back to them).
  void reach_experts(Bytes rows, const Served& served, std::vector<Step>& steps) const {
    communicate(CollectiveKind::kAllToAll, Axis::kExpert, rows, groups_.expert, served, steps);
    communicate(CollectiveKind::kAllGather, Axis::kExpert, rows * groups_.expert_tensor.ranks,
                groups_.expert_tensor, served, steps);
  }
  void leave_experts(Bytes rows, const Served& served, std::vector<Step>& steps) const {
    communicate(CollectiveKind::kReduceScatter, Axis::kExpert, rows * groups_.expert_tensor.ranks,
                groups_.expert_tensor, served, steps);
    communicate(CollectiveKind::kAllToAll, Axis::kExpert, rows, groups_.expert, served, steps);
  }
  void gather_without_sequence_parallel(std::int64_t width, const Served& served,
                                        std::vector<Step>& steps) const {
    if (!shard_.sequence_parallel)
      over_tensor(CollectiveKind::kAllGather, token_bytes(width), served, steps);
  }

  // ---- backward ----

  void backward_input_of(int i, std::vector<Step>& steps) {
    const Operator& o = op(i);
    constexpr Phase kPhase = Phase::kBackwardInput;
    if (const auto width = leaving_width(o); width && shard_.sequence_parallel)
      over_tensor(CollectiveKind::kAllGather, token_bytes(*width), {i, kPhase, o.outputs.front()},
                  steps);
    const auto* attention = std::get_if<Attention>(&o.shape);
    if (attention != nullptr)
      gather_keys_and_values(*attention, CollectiveKind::kAllGather, {i, kPhase, {}}, steps);
    const auto* dispatch = std::get_if<TokenDispatch>(&o.shape);
    if (dispatch != nullptr)
      leave_experts(rows_of(*dispatch), {i, kPhase, o.outputs.front()}, steps);
    append(i, kPhase, steps);
    if (const auto* combine = std::get_if<TokenCombine>(&o.shape))
      reach_experts(rows_of(*combine), {i, kPhase, o.inputs.front()}, steps);
    if (dispatch != nullptr)
      gather_without_sequence_parallel(dispatch->width, {i, kPhase, o.inputs.front()}, steps);
    if (attention != nullptr)
      gather_keys_and_values(*attention, CollectiveKind::kReduceScatter, {i, kPhase, {}}, steps);
    for (const EnteringTensor& e : entering_)
      if (e.first_reader == i)
        over_tensor(
            shard_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
            e.bytes, {i, kPhase, e.tensor}, steps);
  }

  void backward_weight_of(int i, std::vector<Step>& steps) {
    // In reverse order the last reader comes first: it gathers for all of them.
    if (shard_.sequence_parallel && std::holds_alternative<Linear>(op(i).shape))
      for (const EnteringTensor& e : entering_)
        if (e.last_reader == i)
          over_tensor(CollectiveKind::kAllGather, e.bytes, {i, Phase::kBackwardWeight, e.tensor},
                      steps);
    append(i, Phase::kBackwardWeight, steps);
  }

  const ModelGraph& model_;
  const Layer& layer_;
  const JobGroups& groups_;
  ShardShape shard_;
  LocalTokens tokens_;
  std::int64_t element_;
  bool is_cut_;
  std::vector<EnteringTensor> entering_;
  std::vector<Kernel> kernels_;  ///< kept to save allocations
};

std::string part_name(const Layer& layer, std::string_view pass) {
  constexpr std::array<std::string_view, 3> kKinds{"embedding", "block", "head"};
  std::string name(kKinds[static_cast<std::size_t>(layer.kind)]);
  // Class 0 is the embedding; block classes count from 1 and the usual single one needs no number.
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

LayerParts append_layer_parts(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                              const JobGroups& groups, std::vector<WorkPart>& parts) {
  LayerLowering lowering(model, layer, strategy, groups);
  const Layer& l = model.layers[layer.index()];
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
  // Fused attention computes its scores again by itself: there is nothing left to choose.
  if (kind == RecomputeKind::kSelective && strategy.attention == AttentionAlgorithm::kStandard)
    made.recompute = part("recompute", [&](auto& steps) { lowering.attention_forward(steps); });
  if (made.recompute >= 0) parts[static_cast<std::size_t>(made.recompute)].recompute = true;
  return made;
}

}  // namespace meshwright
