#include "kernels/device/block_pool.hpp"

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Rounds up to common block sizes: multiples of 512 bytes, above 1 MiB of 2 MiB.
std::int64_t rounded(std::int64_t bytes) {
  constexpr std::int64_t kSmall = 512, kLarge = std::int64_t{2} << 20;
  const std::int64_t step = bytes > kLarge / 2 ? kLarge : kSmall;
  return (bytes + step - 1) / step * step;
}

}  // namespace

void* BlockPool::allocate(Bytes bytes, void* stream) {
  if (bytes.value <= 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const std::int64_t size = rounded(bytes.value);
  if (void* kept = take_cached(size, stream); kept != nullptr) return kept;
  void* memory = source_.allocate(Bytes(size));
  if (memory == nullptr && !free_.empty()) {
    source_.wait_for_all_work();
    release_cached();
    memory = source_.allocate(Bytes(size));
  }
  if (memory != nullptr) size_of_.emplace(memory, size);
  return memory;
}

/// Wastes at most a quarter of a block.
void* BlockPool::take_cached(std::int64_t size, void* stream) {
  for (auto block = free_.lower_bound(size);
       block != free_.end() && block->first <= size + size / 4; ++block) {
    const Free free = block->second;
    if (free.stream != stream && !source_.is_complete(free.event)) continue;
    free_.erase(block);
    events_.push_back(free.event);
    return free.memory;
  }
  return nullptr;
}

void BlockPool::release(void* memory, void* stream) {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto found = size_of_.find(memory);
  MW_CHECK(found != size_of_.end());
  if (events_.empty()) events_.push_back(source_.create_event());
  source_.record(events_.back(), stream);
  free_.emplace(found->second, Free{memory, stream, events_.back()});
  events_.pop_back();
}

void BlockPool::release_cached() {
  for (const auto& [size, free] : free_) {
    source_.release(free.memory);
    size_of_.erase(free.memory);
    events_.push_back(free.event);
  }
  free_.clear();
}

Bytes BlockPool::cached() const {
  const std::lock_guard lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& [size, free] : free_) sum += size;
  return Bytes(sum);
}

}  // namespace meshwright
