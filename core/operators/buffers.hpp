/// The buffers that hold the activations of one micro-batch on one rank.
///
/// Operators acquire buffers while they run; a buffer is released when its pass leaves the last
/// operator that reads it (core/lowering/buffer_lifetimes.hpp). The same events are what lower()
/// counts and what the executor allocates and frees. Not described: kernel workspaces (reserved)
/// and per-token values in host memory (losses, norm statistics, routing).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/memory_amounts.hpp"
#include "core/operators/shard_shape.hpp"

namespace meshwright {

/// The form in which one rank holds an activation or its gradient.
enum class Form : std::uint8_t {
  kValue,             ///< this rank's shard
  kGatheredValue,     ///< all tokens of the tensor group, or all keys of the context group
  kGradient,          ///< gradient of this rank's shard
  kPartialGradient,   ///< gradient of the full tensor, not yet summed over ranks
  kGatheredGradient,  ///< all tokens of the tensor group
  kHeadCutValue,      ///< full sequences, sharded over heads (all-to-all context parallelism)
  kHeadCutGradient,
  // Identified by operator, not by tensor:
  kSoftmaxSums,  ///< log-sum-exp of attention
  kDropoutMask   ///< one byte per element
};

struct BufferKey {
  std::int32_t id = -1;  ///< index of a tensor or an operator, depending on `form`
  Form form = Form::kValue;
  friend auto operator<=>(const BufferKey&, const BufferKey&) = default;
};

struct HeldBuffer {
  Bytes bytes;
  MemoryClass what = MemoryClass::kActivations;
  friend bool operator==(const HeldBuffer&, const HeldBuffer&) = default;
};

/// What happens to a buffer in a program.
enum class BufferAction : std::uint8_t {
  kAcquire,         ///< the key is not live
  kConsume,         ///< freed by the step itself: a collective replaces it with another one
  kRelease,         ///< its last reader is done
  kBeginTemporary,  ///< used by this step alone; the key is empty
  kEndTemporary
};
struct BufferEvent {
  std::int32_t step = 0;  ///< index of the step that it belongs to; kRelease: before that step
  BufferAction action = BufferAction::kAcquire;
  BufferKey buffer;
  HeldBuffer held;
  friend bool operator==(const BufferEvent&, const BufferEvent&) = default;
};

/// The live buffers of one micro-batch in the order of a program, and their peak.
class LiveBuffers {
 public:
  using Map = std::map<BufferKey, HeldBuffer>;

  LiveBuffers(const ModelGraph& model, const ShardShape& shard);
  /// The layers that follow are sharded in this way.
  void continue_with(const ShardShape& shard);

  // ---- sizes on one rank ----
  Bytes local(TensorId id) const { return activation_bytes(activation_of(model_, id), shard_); }
  /// Size with all tokens of the tensor group.
  Bytes gathered(TensorId id) const { return activation_bytes(activation_of(model_, id), whole_); }
  HeldBuffer value_of(TensorId id) const;
  HeldBuffer gradient_of(TensorId id) const;

  // ---- live buffers ----
  static BufferKey key(TensorId id, Form form = Form::kValue) { return {id.value, form}; }
  static BufferKey gradient(TensorId id) { return {id.value, Form::kGradient}; }
  const Map& all() const { return live_; }
  bool has(const BufferKey& buffer) const { return live_.contains(buffer); }
  const HeldBuffer& at(const BufferKey& buffer) const { return live_.at(buffer); }

  void acquire(const BufferKey& buffer, const HeldBuffer& held);
  void acquire_gradient(TensorId id);           ///< unless it is live already
  HeldBuffer consume(const BufferKey& buffer);  ///< must be live
  void consume_if_live(const BufferKey& buffer);
  void release(const BufferKey& buffer);  ///< if it is live
  /// Holds the buffer only while `then` runs.
  template <class Then>
  void meanwhile(const HeldBuffer& held, const Then& then) {
    begin_temporary(held);
    then();
    end_temporary(held);
  }
  void meanwhile(const HeldBuffer& held) {
    meanwhile(held, [] {});
  }

  /// Replaces the live buffers, resets the peak, and notes further events as those of a program
  /// with these steps.
  void start_from(Map live, const std::vector<Step>& steps, std::vector<BufferEvent>& events);
  const MemoryAmounts& peak() const { return peak_; }  ///< by class, at the largest total

 private:
  bool is_logits(TensorId id) const;
  void note(BufferAction action, const BufferKey& buffer, const HeldBuffer& held);
  void erase(Map::iterator buffer, BufferAction action);
  void begin_temporary(const HeldBuffer& held);
  void end_temporary(const HeldBuffer& held);

  const ModelGraph& model_;
  ShardShape shard_, whole_;
  Bytes logit_values_, logit_gradient_;
  Map live_;
  MemoryAmounts amounts_, peak_;
  const std::vector<Step>* steps_ = nullptr;
  std::vector<BufferEvent>* events_ = nullptr;
};

MemoryAmounts sum_of(const LiveBuffers::Map& buffers);

}  // namespace meshwright
