#include "kernels/device_queue.hpp"

#include <algorithm>
#include <functional>

#include "core/check.hpp"

namespace meshwright {

DeviceQueue::DeviceQueue(const KernelTable& kernels, const DeviceTable& device, QueueTiming timing)
    : kernels_(kernels), device_(device), timing_(timing), stream_(device.create_stream()) {}

/// Also while a failure is on its way: what the device says then has been said before.
DeviceQueue::~DeviceQueue() {
  try {
    wait();
  } catch (const std::exception&) {
    kept_.clear();
  }
  for (const auto& [memory, size] : blocks_)
    device_.give_back_shared(const_cast<std::byte*>(memory));
  device_.destroy_stream(stream_);
}

std::byte* DeviceQueue::allocate(Bytes bytes) {
  const Bytes size(std::max<std::int64_t>(bytes.value, 1));
  auto* memory = static_cast<std::byte*>(device_.allocate_shared(size));
  blocks_.emplace(memory, size.value);
  return memory;
}

void DeviceQueue::give_back(std::byte* memory) {
  MW_CHECK(blocks_.erase(memory) == 1);
  wait();
  device_.give_back_shared(memory);
}

bool DeviceQueue::holds(const void* memory, Bytes bytes) const {
  const auto* first = static_cast<const std::byte*>(memory);
  auto behind = blocks_.upper_bound(first);
  if (behind == blocks_.begin()) return false;
  const auto& [start, size] = *--behind;
  return first - start + bytes.value <= size;
}

const std::byte* DeviceQueue::keep(std::span<const std::byte> bytes) {
  std::unique_ptr<std::byte[]>& kept = kept_.emplace_back(new std::byte[bytes.size()]);
  std::ranges::copy(bytes, kept.get());
  return kept.get();
}

void DeviceQueue::copy(void* to, const void* from, Bytes bytes) {
  device_.copy(to, from, bytes, stream_);
  has_work_ = true;
}

void DeviceQueue::wait() {
  if (has_work_) waits_ ? waits_(stream_) : device_.wait_for_stream(stream_);
  has_work_ = false;
  kept_.clear();
}

}  // namespace meshwright
