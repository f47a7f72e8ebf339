/// The live buffers of one micro-batch in a slice (sizes only) and their peak. Operators allocate
/// and free them in the same order as the executor's operators (activation_memory.cpp).
#pragma once

#include <map>

#include "core/graph/activation_buffers.hpp"
#include "core/operators/operator_work.hpp"

namespace meshwright {

struct HeldBuffer {
  Bytes bytes;
  MemoryClass what = MemoryClass::kActivations;
  friend bool operator==(const HeldBuffer&, const HeldBuffer&) = default;
};

class LiveBuffers {
 public:
  using Map = std::map<ActivationBuffer, HeldBuffer>;

  LiveBuffers(const ModelGraph& model, const ShardShape& shard);

  // ---- sizes on one rank ----
  const ModelGraph& model;
  ShardShape shard;
  const ActivationTensor& activation(TensorId id) const { return activation_of(model, id); }
  Bytes local(TensorId id) const { return activation_bytes(activation(id), shard); }
  /// Size with all tokens of the tensor group.
  Bytes gathered(TensorId id) const { return activation_bytes(activation(id), whole_); }
  HeldBuffer value_of(TensorId id) const;
  HeldBuffer gradient_of(TensorId id) const;
  bool is_cut() const { return shard.degrees.tensor > 1; }

  // ---- live buffers ----
  static ActivationBuffer key(TensorId id, Form form = Form::kValue) { return {id.value, form}; }
  static ActivationBuffer gradient(TensorId id) { return {id.value, Form::kGradient}; }
  const Map& all() const { return live_; }
  bool has(const ActivationBuffer& buffer) const { return live_.contains(buffer); }
  const HeldBuffer& at(const ActivationBuffer& buffer) const { return live_.at(buffer); }

  /// Replaces a live buffer with the same key.
  void make(const ActivationBuffer& buffer, const HeldBuffer& held);
  void drop(const ActivationBuffer& buffer);
  HeldBuffer take(const ActivationBuffer& buffer);  ///< removes and returns a live buffer
  void add_gradient(TensorId id);                   ///< allocates it unless it is live already
  /// Holds the buffer only while `then` runs.
  template <class Then>
  void meanwhile(const HeldBuffer& held, const Then& then) {
    amounts_[held.what] += held.bytes;
    note_peak();
    then();
    amounts_[held.what] -= held.bytes;
  }

  /// Replaces the live buffers and resets the peak.
  void start_from(Map live);
  const MemoryAmounts& peak() const { return peak_; }  ///< by class, at the largest total

 private:
  bool is_logits(TensorId id) const;
  void note_peak();
  ShardShape whole_;
  LogitBytes logits_;
  Map live_;
  MemoryAmounts amounts_, peak_;
};

MemoryAmounts sum_of(const LiveBuffers::Map& buffers);
inline const Operator& operator_of(const LiveBuffers& live, OperatorId id) {
  return live.model.operators[id.index()];
}

// ---- operators with many buffers: activation_memory_context.cpp, _experts.cpp ----

/// Log-sum-exp of attention: fp32, one per row and head of this rank.
Bytes softmax_sums(const LiveBuffers& live, OperatorId attention);
/// Ring attention; the backward pass includes the final hop that returns the gradients of keys and
/// values to their owners.
void ring_forward(LiveBuffers& live, OperatorId op);
void ring_backward(LiveBuffers& live, OperatorId op);
/// Attention over full sequences and a shard of the heads.
void attend_cut_heads(LiveBuffers& live, OperatorId op);
void differentiate_cut_heads(LiveBuffers& live, OperatorId op);
/// A collective of context ranks before or after attention.
void over_context_ranks(LiveBuffers& live, OperatorId op, const Collective& collective,
                        const StageKeeps& keeps);

void forward_latent_rotary(LiveBuffers& live, OperatorId op);
void backward_latent_rotary(LiveBuffers& live, OperatorId op);

/// Passes of expert-related operators; return false if the operator needs no special handling.
bool expert_forward(LiveBuffers& live, OperatorId op);
bool expert_backward_input(LiveBuffers& live, OperatorId op);
/// A collective of expert or expert-tensor ranks, or of tensor ranks around experts.
void over_expert_ranks(LiveBuffers& live, OperatorId op, const Collective& collective);

}  // namespace meshwright
