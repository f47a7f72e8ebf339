#include "core/operators/buffers.hpp"

#include "core/base/check.hpp"
#include "core/operators/saved_activations.hpp"

namespace meshwright {

LiveBuffers::LiveBuffers(const ModelGraph& model, const ShardShape& shard)
    : model_(model), shard_(shard), whole_(shard) {
  whole_.sequence_parallel = false;
  const LogitBytes logits = logit_bytes(model, LayerId(model.layers.size() - 1), shard);
  logit_values_ = logits.values;
  logit_gradient_ = logits.gradient;
}

void LiveBuffers::continue_with(const ShardShape& shard) {
  shard_ = whole_ = shard;
  whole_.sequence_parallel = false;
}

bool LiveBuffers::is_logits(TensorId id) const {
  const Operator& last = model_.operators.back();
  return std::holds_alternative<CrossEntropy>(last.shape) && last.inputs.front() == id;
}
HeldBuffer LiveBuffers::value_of(TensorId id) const {
  if (is_logits(id)) return {logit_values_, MemoryClass::kLogits};
  return {local(id), MemoryClass::kActivations};
}
HeldBuffer LiveBuffers::gradient_of(TensorId id) const {
  if (is_logits(id)) return {logit_gradient_, MemoryClass::kLogits};
  return {local(id), MemoryClass::kWorking};
}

void LiveBuffers::note(BufferAction action, const BufferKey& buffer, const HeldBuffer& held) {
  if (events_ != nullptr)
    events_->push_back({static_cast<std::int32_t>(steps_->size()), action, buffer, held});
}

void LiveBuffers::acquire(const BufferKey& buffer, const HeldBuffer& held) {
  consume_if_live(buffer);
  live_[buffer] = held;
  note(BufferAction::kAcquire, buffer, held);
  amounts_[held.what] += held.bytes;
  if (total(amounts_) > total(peak_)) peak_ = amounts_;
}

void LiveBuffers::acquire_gradient(TensorId id) {
  if (!has(gradient(id))) acquire(gradient(id), gradient_of(id));
}

void LiveBuffers::erase(Map::iterator buffer, BufferAction action) {
  note(action, buffer->first, buffer->second);
  amounts_[buffer->second.what] -= buffer->second.bytes;
  live_.erase(buffer);
}

HeldBuffer LiveBuffers::consume(const BufferKey& buffer) {
  MW_CHECK(has(buffer));
  const HeldBuffer held = live_.at(buffer);
  consume_if_live(buffer);
  return held;
}
void LiveBuffers::consume_if_live(const BufferKey& buffer) {
  if (const auto found = live_.find(buffer); found != live_.end())
    erase(found, BufferAction::kConsume);
}
void LiveBuffers::release(const BufferKey& buffer) {
  if (const auto found = live_.find(buffer); found != live_.end())
    erase(found, BufferAction::kRelease);
}

void LiveBuffers::begin_temporary(const HeldBuffer& held) {
  note(BufferAction::kBeginTemporary, {}, held);
  amounts_[held.what] += held.bytes;
  if (total(amounts_) > total(peak_)) peak_ = amounts_;
}
void LiveBuffers::end_temporary(const HeldBuffer& held) {
  note(BufferAction::kEndTemporary, {}, held);
  amounts_[held.what] -= held.bytes;
}

void LiveBuffers::start_from(Map live, const std::vector<Step>& steps,
                             std::vector<BufferEvent>& events) {
  live_ = std::move(live);
  amounts_ = sum_of(live_);
  peak_ = amounts_;
  steps_ = &steps;
  events_ = &events;
}

MemoryAmounts sum_of(const LiveBuffers::Map& buffers) {
  MemoryAmounts sum;
  for (const auto& [buffer, held] : buffers) sum[held.what] += held.bytes;
  return sum;
}

}  // namespace meshwright
