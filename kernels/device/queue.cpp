#include "kernels/device/queue.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kStagingBlock = std::size_t{1} << 20;
/// Above this size the host waits for the copy instead of staging it: otherwise initial parameter
/// values would be held twice.
constexpr std::int64_t kMaxStaged = std::int64_t{16} << 20;

using Clock = std::chrono::steady_clock;
/// Out of memory: retry interval, and time without any change in free memory before giving up.
constexpr std::chrono::microseconds kRetryInterval{200};
constexpr std::chrono::seconds kGiveUpAfter{1};

}  // namespace

DeviceQueue::DeviceQueue(const KernelTable& kernels, const DeviceTable& device, QueueTiming timing,
                         ScratchContents scratch)
    : kernels_(kernels),
      device_(device),
      timing_(timing),
      scratch_(scratch),
      waits_(device.wait_for_stream),
      gate_(nullptr, device.release_host),
      lanes_(device) {}

/// Also runs while an exception propagates: an error of the device has already been reported then.
DeviceQueue::~DeviceQueue() {
  try {
    wait();
  } catch (const std::exception&) {
    reset_staging();
  }
  for (const auto& [memory, block] : blocks_)
    device_.release(const_cast<std::byte*>(memory), stream());
}

void DeviceQueue::set_wait(std::function<void(void*)> waits) {
  waits_ = waits ? std::move(waits) : device_.wait_for_stream;
}

/// Memory that enqueued work still uses becomes free once the queue has finished that work.
void* DeviceQueue::working_memory(Bytes bytes) {
  void* memory = device_.allocate(bytes, stream());
  note_work();
  if (memory != nullptr || bytes.value == 0) return memory;
  return bytes > device_.memory() ? allocated_on(device_, bytes, stream()) : wait_for_memory(bytes);
}

/// Other queues on the device and other streams of this rank free memory in their own order, and
/// may still be busy when this queue is idle.
void* DeviceQueue::wait_for_memory(Bytes bytes) {
  Bytes free = device_.free_memory();
  for (Clock::time_point changed = Clock::now(); Clock::now() - changed < kGiveUpAfter;) {
    // Staging buffers are not reset: the caller may be in the middle of its copies.
    lanes_.wait_for_all(waits_);
    if (void* memory = device_.allocate(bytes, stream()); memory != nullptr) return memory;
    std::this_thread::sleep_for(kRetryInterval);
    if (const Bytes now = device_.free_memory(); now != free) {
      free = now;
      changed = Clock::now();
    }
  }
  return allocated_on(device_, bytes, stream());
}

std::byte* DeviceQueue::allocate(Bytes bytes) {
  const Bytes size(std::max<std::int64_t>(bytes.value, 1));
  auto* memory = static_cast<std::byte*>(working_memory(size));
  Block& block = blocks_[memory];
  block.size = size.value;
  lanes_.use(block.uses, 0, size.value, /*writes=*/true);
  return memory;
}

void DeviceQueue::release(std::byte* memory) {
  const auto block = blocks_.find(memory);
  MW_CHECK(block != blocks_.end());
  const auto last_used_on = [&]() -> void* {
    try {
      return lanes_.stream_after(block->second.uses);
    } catch (const RuntimeFailure&) {  // also called by destructors; already reported
      return stream();
    }
  };
  device_.release(memory, last_used_on());
  blocks_.erase(block);
}

DeviceQueue::Blocks::const_iterator DeviceQueue::block_of(const void* memory, Bytes bytes) const {
  const auto* first = static_cast<const std::byte*>(memory);
  auto block = blocks_.upper_bound(first);
  if (block == blocks_.begin()) return blocks_.end();
  --block;
  return first - block->first + bytes.value <= block->second.size ? block : blocks_.end();
}

bool DeviceQueue::holds(const void* memory, Bytes bytes) const {
  return block_of(memory, bytes) != blocks_.end();
}

bool DeviceQueue::use(const void* memory, Bytes bytes, bool writes) {
  const auto found = block_of(memory, bytes);
  if (found == blocks_.end()) return false;
  const std::int64_t begin = static_cast<const std::byte*>(memory) - found->first;
  lanes_.use(blocks_[found->first].uses, begin, begin + bytes.value, writes);
  return true;
}

// ---- taking turns ----

std::unique_lock<std::recursive_mutex> DeviceQueue::take_turn() const {
  static std::recursive_mutex turn;
  return timing_ == QueueTiming::kNone ? std::unique_lock<std::recursive_mutex>()
                                       : std::unique_lock(turn);
}

void DeviceQueue::run_in_turn(const std::function<void()>& enqueues) {
  const auto turn = take_turn();
  enqueues();
  note_work();
  if (turn) lanes_.wait_for_current(waits_);
}

std::uint32_t* DeviceQueue::gate() {
  if (gate_ == nullptr) {
    gate_ = allocate_host(sizeof(std::uint32_t));
    new (gate_.get()) std::uint32_t(0);
  }
  return reinterpret_cast<std::uint32_t*>(gate_.get());
}

// ---- copies ----

void DeviceQueue::copy(void* to, const void* from, Bytes bytes) {
  if (bytes.value == 0) return;
  use(from, bytes, /*writes=*/false);
  use(to, bytes, /*writes=*/true);
  run_in_turn([&] { device_.copy(to, from, bytes, stream()); });
}

/// Waits for the lane first, by waits_, which may throw: a copy enqueued before that could still
/// access the caller's memory after the exception, and CUDA's own wait for it would not be covered
/// by the watchdog.
void DeviceQueue::copy_and_wait(void* to, const void* from, Bytes bytes) {
  use(from, bytes, /*writes=*/false);
  use(to, bytes, /*writes=*/true);
  lanes_.wait_for_current(waits_);
  if (!lanes_.has_work()) reset_staging();
  if (bytes.value == 0) return;
  const auto turn = take_turn();
  device_.copy(to, from, bytes, stream());
  device_.wait_for_stream(stream());
}

void DeviceQueue::read(void* to_host, const void* from, Bytes bytes) {
  copy_and_wait(to_host, from, bytes);
}

void DeviceQueue::write(void* to, const void* from_host, Bytes bytes) {
  if (bytes.value == 0) return;
  if (bytes.value > kMaxStaged) return copy_and_wait(to, from_host, bytes);
  const std::span source(static_cast<const std::byte*>(from_host),
                         static_cast<std::size_t>(bytes.value));
  copy(to, stage(source), bytes);
}

DeviceQueue::HostMemory DeviceQueue::allocate_host(std::size_t size) const {
  void* memory = device_.allocate_host(Bytes(static_cast<std::int64_t>(size)));
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), device_.release_host};
}

/// Blocks are filled one after the other; a wait starts over with the first.
const std::byte* DeviceQueue::stage(std::span<const std::byte> bytes) {
  constexpr std::size_t kAlignment = 64;
  while (staging_in_use_ == 0 ||
         used_of_last_ + bytes.size() > staging_[staging_in_use_ - 1].size) {
    if (staging_in_use_ == staging_.size()) {
      const std::size_t size = std::max(bytes.size(), kStagingBlock);
      staging_.push_back({allocate_host(size), size});
    }
    ++staging_in_use_;
    used_of_last_ = 0;
  }
  std::byte* kept = staging_[staging_in_use_ - 1].memory.get() + used_of_last_;
  std::ranges::copy(bytes, kept);
  used_of_last_ += (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  return kept;
}

void DeviceQueue::reset_staging() { staging_in_use_ = used_of_last_ = 0; }

void DeviceQueue::wait() {
  lanes_.wait_for_all(waits_);
  reset_staging();
  if (!lanes_.has_several()) return;
  lanes_.reset();
  for (auto& [memory, block] : blocks_) block.uses.clear();
}

}  // namespace meshwright
