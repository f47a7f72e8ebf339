#include "core/graph/live_buffers.hpp"

#include "core/base/check.hpp"

namespace meshwright {

LiveBuffers::LiveBuffers(const ModelGraph& of, const ShardShape& cut)
    : model(of),
      shard(cut),
      whole_(cut),
      logits_(logit_bytes(of, LayerId(of.layers.size() - 1), cut)) {
  whole_.sequence_parallel = false;
}

bool LiveBuffers::is_logits(TensorId id) const {
  const Operator& last = model.operators.back();
  return std::holds_alternative<CrossEntropy>(last.shape) && last.inputs.front() == id;
}
HeldBuffer LiveBuffers::value_of(TensorId id) const {
  if (is_logits(id)) return {logits_.values, MemoryClass::kLogits};
  return {local(id), MemoryClass::kActivations};
}
HeldBuffer LiveBuffers::gradient_of(TensorId id) const {
  if (is_logits(id)) return {logits_.gradient, MemoryClass::kLogits};
  return {local(id), MemoryClass::kWorking};
}

void LiveBuffers::make(const ActivationBuffer& buffer, const HeldBuffer& held) {
  drop(buffer);
  live_[buffer] = held;
  amounts_[held.what] += held.bytes;
  note_peak();
}

void LiveBuffers::drop(const ActivationBuffer& buffer) {
  const auto found = live_.find(buffer);
  if (found == live_.end()) return;
  amounts_[found->second.what] -= found->second.bytes;
  live_.erase(found);
}

HeldBuffer LiveBuffers::take(const ActivationBuffer& buffer) {
  MW_CHECK(has(buffer));
  const HeldBuffer held = live_.at(buffer);
  drop(buffer);
  return held;
}

void LiveBuffers::add_gradient(TensorId id) {
  if (!has(gradient(id))) make(gradient(id), gradient_of(id));
}

void LiveBuffers::start_from(Map live) {
  live_ = std::move(live);
  amounts_ = sum_of(live_);
  peak_ = amounts_;
}

void LiveBuffers::note_peak() {
  if (total(amounts_) > total(peak_)) peak_ = amounts_;
}

MemoryAmounts sum_of(const LiveBuffers::Map& buffers) {
  MemoryAmounts sum;
  for (const auto& [buffer, held] : buffers) sum[held.what] += held.bytes;
  return sum;
}

}  // namespace meshwright
