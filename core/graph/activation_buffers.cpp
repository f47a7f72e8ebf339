#include "core/graph/activation_buffers.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

bool has(const std::vector<TensorId>& list, TensorId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

/// Operators with a separate weight-gradient phase.
bool has_weight_phase(const Operator& op) {
  return std::holds_alternative<Linear>(op.shape) ||
         std::holds_alternative<ExpertLinear>(op.shape) ||
         std::holds_alternative<Router>(op.shape) ||
         std::holds_alternative<EmbeddingLookup>(op.shape);
}

bool is_forward(Visit visit) { return visit == Visit::kForward || visit == Visit::kRecompute; }

/// Finds the buffers that are last used by a visit; operator indices start at the layer's first.
class Lifetimes {
 public:
  Lifetimes(const ModelGraph& model, const StageKeeps& keeps, LayerId layer, OperatorId op,
            Visit visit)
      : keeps_(keeps),
        layer_(layer),
        operators_(operators_of(model, layer)),
        at_(op.value - model.layers[layer.index()].first_operator),
        id_(op.value),
        visit_(visit) {}

  std::vector<ActivationBuffer> run() {
    is_forward(visit_) ? forward() : backward();
    return std::move(dead_);
  }

 private:
  const Operator& op() const { return operators_[static_cast<std::size_t>(at_)]; }
  void drop(TensorId id, Form form) { dead_.push_back({id.value, form}); }

  template <class Claim>
  bool any(int begin, int end, const Claim& claim) const {
    for (int i = begin; i < end; ++i)
      if (claim(operators_[static_cast<std::size_t>(i)])) return true;
    return false;
  }
  int count() const { return static_cast<int>(operators_.size()); }
  bool is_read(int begin, int end, TensorId id) const {
    return any(begin, end, [id](const Operator& o) { return has(o.inputs, id); });
  }
  bool is_read_for_weights(int begin, int end, TensorId id) const {
    return any(begin, end,
               [id](const Operator& o) { return has_weight_phase(o) && has(o.inputs, id); });
  }
  bool is_made_here(TensorId id) const {
    return any(0, count(), [id](const Operator& o) { return has(o.outputs, id); });
  }
  bool layer_keeps(TensorId id) const {
    return any(0, count(), [id](const Operator& o) { return has(o.kept, id); });
  }
  /// Inputs of the next layer.
  bool is_handed_on(TensorId id) const { return has(operators_.back().outputs, id); }

  bool is_kept(TensorId id) const {
    return keeps_.keeps(id) || (visit_ == Visit::kRecompute && layer_keeps(id));
  }

  void forward() {
    const auto let_go = [&](TensorId id) {
      if (is_read(at_ + 1, count(), id)) return;
      drop(id, Form::kGatheredValue);
      if (!is_kept(id) && !is_handed_on(id)) drop(id, Form::kValue);
    };
    for (const TensorId id : op().inputs) let_go(id);
    for (const TensorId id : op().outputs) let_go(id);
    if (visit_ == Visit::kForward && at_ + 1 == count()) drop_cut_heads();
    if (visit_ == Visit::kRecompute || !keeps_.is_recomputed(layer_)) return;
    dead_.push_back({id_, Form::kSoftmaxSums});
    dead_.push_back({id_, Form::kDropoutMask});
  }

  /// Values that are not saved, or are recomputed.
  void drop_cut_heads() {
    for (const Operator& o : operators_)
      for (const TensorId id : o.outputs)
        if (keeps_.exchanges_heads_again() || !keeps_.keeps(id)) drop(id, Form::kHeadCutValue);
  }

  void backward() {
    const bool inputs_alone = visit_ == Visit::kBackwardInput;
    const bool weights_alone = visit_ == Visit::kBackwardWeight;
    for (const TensorId id : op().outputs) {
      if (inputs_alone && has_weight_phase(op())) continue;
      drop(id, Form::kGradient);
      drop(id, Form::kGatheredGradient);
    }
    // A value is not read before it is produced, so in reverse order its producer comes last.
    for (const TensorId id : op().outputs)
      if (!weights_alone && !is_handed_on(id) &&
          !(inputs_alone && is_read_for_weights(0, count(), id)))
        drop(id, Form::kValue);
    for (const TensorId id : op().inputs) {
      if (is_read(0, at_, id)) continue;  // an earlier operator, visited later, still reads it
      drop(id, Form::kGatheredValue);
      if (weights_alone || (!is_made_here(id) && !(inputs_alone && reads_for_weights(id))))
        drop(id, Form::kValue);
    }
    if (weights_alone) return;
    dead_.push_back({id_, Form::kSoftmaxSums});
    dead_.push_back({id_, Form::kDropoutMask});
  }
  bool reads_for_weights(TensorId id) const { return is_read_for_weights(0, count(), id); }

  const StageKeeps& keeps_;
  LayerId layer_;
  std::span<const Operator> operators_;
  int at_;
  std::int32_t id_;
  Visit visit_;
  std::vector<ActivationBuffer> dead_;
};

}  // namespace

Visit visit_of(TaskKind kind, Phase phase) {
  if (kind == TaskKind::kForward) return Visit::kForward;
  if (phase == Phase::kForward) return Visit::kRecompute;
  if (kind == TaskKind::kBackwardInput) return Visit::kBackwardInput;
  return kind == TaskKind::kBackwardWeight ? Visit::kBackwardWeight : Visit::kBackward;
}

bool has_gradient_with_inputs(const ModelGraph& model, TensorId parameter) {
  return std::any_of(model.operators.begin(), model.operators.end(), [&](const Operator& op) {
    return !has_weight_phase(op) && has(op.parameters, parameter);
  });
}

bool exchanges_heads_again(const Strategy& strategy) {
  return strategy.recompute.kind == RecomputeKind::kSelective &&
         strategy.attention == AttentionAlgorithm::kStandard;
}

StageKeeps::StageKeeps(const ModelGraph& model, std::span<const LayerId> layers,
                       const Strategy& strategy, int part)
    : exchanges_heads_again_(meshwright::exchanges_heads_again(strategy)) {
  const int recomputed = recomputed_blocks(strategy.recompute, part);
  int block = 0;
  for (const LayerId layer : layers) {
    const bool is_block = model.layers[layer.index()].kind == LayerKind::kBlock;
    if (is_block && block < recomputed) recomputed_.insert(layer.value);
    block += is_block ? 1 : 0;
    std::set<std::int32_t> made_here;
    for (const Operator& op : operators_of(model, layer)) {
      for (const TensorId id : op.outputs) made_here.insert(id.value);
      for (const TensorId id : is_recomputed(layer) ? op.inputs : op.kept)
        if (!is_recomputed(layer) || !made_here.contains(id.value)) kept_.insert(id.value);
    }
  }
}

std::vector<ActivationBuffer> read_no_more(const ModelGraph& model, const StageKeeps& keeps,
                                           LayerId layer, OperatorId op, Visit visit) {
  return Lifetimes(model, keeps, layer, op, visit).run();
}

// ---- visits ----

void LayerVisits::go_to(LayerId layer, OperatorId op, Visit visit) {
  const Layer& l = model_->layers[layer.index()];
  if (layer != layer_ || visit != visit_) {
    finish();
    layer_ = layer;
    visit_ = visit;
    at_ = is_forward(visit) ? 0 : l.operator_count - 1;
  }
  leave_until(op.value - l.first_operator);
}

void LayerVisits::finish() {
  if (layer_.value < 0) return;
  leave_until(is_forward(visit_) ? model_->layers[layer_.index()].operator_count : -1);
  layer_ = LayerId(-1);
}

void LayerVisits::leave_until(int stop) {
  const int step = is_forward(visit_) ? 1 : -1;
  for (; (stop - at_) * step > 0; at_ += step)
    leave_(layer_, OperatorId(model_->layers[layer_.index()].first_operator + at_), visit_);
  MW_CHECK(at_ == stop);  // a pass visits operators in one direction only
}

}  // namespace meshwright
