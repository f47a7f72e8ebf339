#include "kernels/device_queue.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "core/check.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kKeptBlock = std::size_t{1} << 20;
/// Beyond this the host waits for the copy instead of making one of its own: starting values of
/// parameters would otherwise be held twice.
constexpr std::int64_t kMostKept = std::int64_t{16} << 20;

using Clock = std::chrono::steady_clock;
/// Who has waited in vain for memory asks again so often, until no memory has come or gone for so
/// long.
constexpr std::chrono::microseconds kAskAgain{200};
constexpr std::chrono::seconds kQuiet{1};

}  // namespace

DeviceQueue::DeviceQueue(const KernelTable& kernels, const DeviceTable& device, QueueTiming timing)
    : kernels_(kernels), device_(device), timing_(timing), stream_(device.create_stream()) {}

/// Also while a failure is on its way: what the device says then has been said before.
DeviceQueue::~DeviceQueue() {
  try {
    wait();
  } catch (const std::exception&) {
    forget_kept();
  }
  for (const auto& [memory, size] : blocks_)
    device_.give_back(const_cast<std::byte*>(memory), stream_);
  device_.destroy_stream(stream_);
  for (const KeptBlock& block : kept_) device_.give_back_on_host(block.memory);
}

/// Memory that work still uses is there again once the queue has come that far.
void* DeviceQueue::working_memory(Bytes bytes) {
  void* memory = device_.allocate(bytes, stream_);
  has_work_ = true;
  if (memory != nullptr || bytes.value == 0) return memory;
  return bytes > device_.memory() ? allocated_on(device_, bytes, stream_) : memory_of_others(bytes);
}

/// Other queues on the device, and other streams of this rank, give back in their own order: where
/// this queue is done, they may not have come so far.
void* DeviceQueue::memory_of_others(Bytes bytes) {
  Bytes free = device_.free_memory();
  for (Clock::time_point changed = Clock::now(); Clock::now() - changed < kQuiet;) {
    wait_for_stream();  // what is kept for copies stays: a call may be in the middle of its own
    if (void* memory = device_.allocate(bytes, stream_); memory != nullptr) return memory;
    std::this_thread::sleep_for(kAskAgain);
    if (const Bytes now = device_.free_memory(); now != free) {
      free = now;
      changed = Clock::now();
    }
  }
  return allocated_on(device_, bytes, stream_);
}

std::byte* DeviceQueue::allocate(Bytes bytes) {
  const Bytes size(std::max<std::int64_t>(bytes.value, 1));
  auto* memory = static_cast<std::byte*>(working_memory(size));
  blocks_.emplace(memory, size.value);
  return memory;
}

void DeviceQueue::give_back(std::byte* memory) {
  MW_CHECK(blocks_.erase(memory) == 1);
  device_.give_back(memory, stream_);
}

bool DeviceQueue::holds(const void* memory, Bytes bytes) const {
  const auto* first = static_cast<const std::byte*>(memory);
  auto behind = blocks_.upper_bound(first);
  if (behind == blocks_.begin()) return false;
  const auto& [start, size] = *--behind;
  return first - start + bytes.value <= size;
}

// ---- copies ----

void DeviceQueue::copy(void* to, const void* from, Bytes bytes) {
  if (bytes.value == 0) return;
  device_.copy(to, from, bytes, stream_);
  has_work_ = true;
}

/// Waits first, in the way that may end in a failure: a copy that is then still to come would touch
/// what was the caller's memory, and CUDA's own call waits for such a copy, watched by nobody.
void DeviceQueue::copy_at_once(void* to, const void* from, Bytes bytes) {
  wait();
  copy(to, from, bytes);
  device_.wait_for_stream(stream_);
  has_work_ = false;
}

void DeviceQueue::read(void* to_host, const void* from, Bytes bytes) {
  copy_at_once(to_host, from, bytes);
}

void DeviceQueue::write(void* to, const void* from_host, Bytes bytes) {
  if (bytes.value == 0) return;
  if (bytes.value > kMostKept) return copy_at_once(to, from_host, bytes);
  const std::span source(static_cast<const std::byte*>(from_host),
                         static_cast<std::size_t>(bytes.value));
  copy(to, keep(source), bytes);
}

/// Blocks are filled one behind the other, and from the first one again after a wait.
const std::byte* DeviceQueue::keep(std::span<const std::byte> bytes) {
  constexpr std::size_t kAlignment = 64;
  while (kept_in_use_ == 0 || used_of_last_ + bytes.size() > kept_[kept_in_use_ - 1].size) {
    if (kept_in_use_ == kept_.size()) {
      const std::size_t size = std::max(bytes.size(), kKeptBlock);
      void* memory = device_.allocate_on_host(Bytes(static_cast<std::int64_t>(size)));
      if (memory == nullptr) throw std::bad_alloc();
      kept_.push_back({static_cast<std::byte*>(memory), size});
    }
    ++kept_in_use_;
    used_of_last_ = 0;
  }
  std::byte* kept = kept_[kept_in_use_ - 1].memory + used_of_last_;
  std::ranges::copy(bytes, kept);
  used_of_last_ += (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  return kept;
}

void DeviceQueue::forget_kept() { kept_in_use_ = used_of_last_ = 0; }

void DeviceQueue::wait_for_stream() { waits_ ? waits_(stream_) : device_.wait_for_stream(stream_); }

void DeviceQueue::wait() {
  if (has_work_) wait_for_stream();
  has_work_ = false;
  forget_kept();
}

}  // namespace meshwright
