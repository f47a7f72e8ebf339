/// Buffers of one micro-batch in a slice, by size alone: what is there, and the most that was at
/// once. Operators make and let go of them as those of the executor do (activation_memory.cpp).
#pragma once

#include <map>

#include "core/activation_buffers.hpp"
#include "core/operator_work.hpp"

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
  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model.tensors[id.index()].shape);
  }
  Bytes local(TensorId id) const { return activation_bytes(activation(id), shard); }
  /// Of all tokens of the tensor group.
  Bytes gathered(TensorId id) const { return activation_bytes(activation(id), whole_); }
  HeldBuffer value_of(TensorId id) const;
  HeldBuffer gradient_of(TensorId id) const;
  bool is_cut() const { return shard.degrees.tensor > 1; }

  // ---- what is there ----
  static ActivationBuffer key(TensorId id, Form form = Form::kValue) { return {id.value, form}; }
  static ActivationBuffer gradient(TensorId id) { return {id.value, Form::kGradient}; }
  const Map& all() const { return live_; }
  bool has(const ActivationBuffer& buffer) const { return live_.contains(buffer); }
  const HeldBuffer& at(const ActivationBuffer& buffer) const { return live_.at(buffer); }

  /// What was there under this name goes first.
  void make(const ActivationBuffer& buffer, const HeldBuffer& held);
  void drop(const ActivationBuffer& buffer);
  HeldBuffer take(const ActivationBuffer& buffer);  ///< of one that is there
  void add_gradient(TensorId id);                   ///< makes it, unless another reader has
  /// Only while `then` is carried out.
  template <class Then>
  void meanwhile(const HeldBuffer& held, const Then& then) {
    amounts_[held.what] += held.bytes;
    note_peak();
    then();
    amounts_[held.what] -= held.bytes;
  }

  /// What is there from now on; the most at once starts anew.
  void start_from(Map live);
  const MemoryAmounts& peak() const { return peak_; }  ///< by class, when the total was largest

 private:
  bool is_logits(TensorId id) const;
  void note_peak();
  ShardShape whole_;
  LogitBytes logits_;
  Map live_;
  MemoryAmounts amounts_, peak_;
};

MemoryAmounts sum_of(const LiveBuffers::Map& buffers);

// ---- operators whose buffers are many: activation_memory_context.cpp, _experts.cpp ----

/// Log-sum-exp of attention: fp32, for each row and head of this rank.
Bytes softmax_sums(const LiveBuffers& live, OperatorId attention);
/// Attention whose keys and values go round a ring, and the hop that brings gradients home.
void ring_forward(LiveBuffers& live, OperatorId op);
void ring_backward(LiveBuffers& live, OperatorId op);
/// Attention over whole sequences of a part of the heads.
void attend_cut_heads(LiveBuffers& live, OperatorId op);
void differentiate_cut_heads(LiveBuffers& live, OperatorId op);
/// A collective of context ranks in front of, or behind, attention.
void over_context_ranks(LiveBuffers& live, OperatorId op, const Collective& collective,
                        const StageKeeps& keeps);

void forward_latent_rotary(LiveBuffers& live, OperatorId op);
void backward_latent_rotary(LiveBuffers& live, OperatorId op);

/// Passes of operators around experts; false: nothing that other operators do not do.
bool expert_forward(LiveBuffers& live, OperatorId op);
bool expert_backward_input(LiveBuffers& live, OperatorId op);
/// A collective of expert ranks, expert-tensor ranks, or of tensor ranks around experts.
void over_expert_ranks(LiveBuffers& live, OperatorId op, const Collective& collective);

}  // namespace meshwright
