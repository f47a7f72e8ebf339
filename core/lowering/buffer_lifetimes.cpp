#include "core/lowering/buffer_lifetimes.hpp"

#include <algorithm>

#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

bool is_in(const std::vector<TensorId>& list, TensorId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

bool is_forward(Visit visit) { return visit == Visit::kForward || visit == Visit::kRecompute; }

/// Finds the buffers that are last used by a visit; operator indices start at the layer's first.
class Lifetimes {
 public:
  Lifetimes(const ModelGraph& model, const SavedTensors& saved, LayerId layer, OperatorId op,
            Visit visit)
      : saved_(saved),
        layer_(layer),
        operators_(operators_of(model, layer)),
        at_(op.value - model.layers[layer.index()].first_operator),
        id_(op.value),
        visit_(visit) {}

  std::vector<BufferKey> run() {
    is_forward(visit_) ? forward() : backward();
    return std::move(released_);
  }

 private:
  const Operator& op() const { return operators_[static_cast<std::size_t>(at_)]; }
  void release(TensorId id, Form form) { released_.push_back({id.value, form}); }

  template <class Claim>
  bool any(int begin, int end, const Claim& claim) const {
    for (int i = begin; i < end; ++i)
      if (claim(operators_[static_cast<std::size_t>(i)])) return true;
    return false;
  }
  int count() const { return static_cast<int>(operators_.size()); }
  bool is_read(int begin, int end, TensorId id) const {
    return any(begin, end, [id](const Operator& o) { return is_in(o.inputs, id); });
  }
  bool is_read_for_weights(int begin, int end, TensorId id) const {
    return any(begin, end, [id](const Operator& o) {
      return has_weight_gradient(o.shape) && is_in(o.inputs, id);
    });
  }
  bool is_made_here(TensorId id) const {
    return any(0, count(), [id](const Operator& o) { return is_in(o.outputs, id); });
  }
  bool layer_keeps(TensorId id) const {
    return any(0, count(), [id](const Operator& o) { return is_in(o.kept, id); });
  }
  /// Inputs of the next layer.
  bool is_handed_on(TensorId id) const { return is_in(operators_.back().outputs, id); }

  bool is_kept(TensorId id) const {
    return saved_.has(id) || (visit_ == Visit::kRecompute && layer_keeps(id));
  }

  void forward() {
    const auto release_if_done = [&](TensorId id) {
      if (is_read(at_ + 1, count(), id)) return;
      release(id, Form::kGatheredValue);
      if (!is_kept(id) && !is_handed_on(id)) release(id, Form::kValue);
    };
    for (const TensorId id : op().inputs) release_if_done(id);
    for (const TensorId id : op().outputs) release_if_done(id);
    if (visit_ == Visit::kForward && at_ + 1 == count()) release_sharded_heads();
    if (visit_ == Visit::kRecompute || !saved_.is_recomputed(layer_)) return;
    released_.push_back({id_, Form::kSoftmaxSums});
    released_.push_back({id_, Form::kDropoutMask});
  }

  /// Values that are not saved, or are recomputed.
  void release_sharded_heads() {
    for (const Operator& o : operators_)
      for (const TensorId id : o.outputs)
        if (saved_.exchanges_heads_again(layer_) || !saved_.has(id))
          release(id, Form::kHeadCutValue);
  }

  void backward() {
    const bool inputs_alone = visit_ == Visit::kBackwardInput;
    const bool weights_alone = visit_ == Visit::kBackwardWeight;
    for (const TensorId id : op().outputs) {
      if (inputs_alone && has_weight_gradient(op().shape)) continue;
      release(id, Form::kGradient);
      release(id, Form::kGatheredGradient);
    }
    // A value is not read before it is produced, so in reverse order its producer comes last.
    for (const TensorId id : op().outputs)
      if (!weights_alone && !is_handed_on(id) &&
          !(inputs_alone && is_read_for_weights(0, count(), id)))
        release(id, Form::kValue);
    for (const TensorId id : op().inputs) {
      if (is_read(0, at_, id)) continue;  // an earlier operator, visited later, still reads it
      release(id, Form::kGatheredValue);
      if (weights_alone || (!is_made_here(id) && !(inputs_alone && reads_for_weights(id))))
        release(id, Form::kValue);
    }
    if (weights_alone) return;
    released_.push_back({id_, Form::kSoftmaxSums});
    released_.push_back({id_, Form::kDropoutMask});
  }
  bool reads_for_weights(TensorId id) const { return is_read_for_weights(0, count(), id); }

  const SavedTensors& saved_;
  LayerId layer_;
  std::span<const Operator> operators_;
  int at_;
  std::int32_t id_;
  Visit visit_;
  std::vector<BufferKey> released_;
};

}  // namespace

SavedTensors::SavedTensors(const ModelGraph& model, std::span<const SavedLayer> layers) {
  for (const auto& [layer, is_recomputed, repeats] : layers) {
    if (is_recomputed) recomputed_.push_back(layer.value);
    if (repeats) repeats_attention_.push_back(layer.value);
    std::vector<TensorId> made_here;
    for (const Operator& op : operators_of(model, layer)) {
      made_here.insert(made_here.end(), op.outputs.begin(), op.outputs.end());
      for (const TensorId id : is_recomputed ? op.inputs : op.kept)
        if (!is_recomputed || !is_in(made_here, id)) saved_.push_back(id.value);
    }
  }
  std::sort(recomputed_.begin(), recomputed_.end());
  std::sort(repeats_attention_.begin(), repeats_attention_.end());
  std::sort(saved_.begin(), saved_.end());
}

std::vector<BufferKey> released_after(const ModelGraph& model, const SavedTensors& saved,
                                      LayerId layer, OperatorId op, Visit visit) {
  return Lifetimes(model, saved, layer, op, visit).run();
}

}  // namespace meshwright
