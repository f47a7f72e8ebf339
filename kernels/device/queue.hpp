/// The work of one rank on a device: its streams, its device memory, and copies between that memory
/// and the host, which cannot access it directly.
///
/// All work goes to one stream until switch_to_lane() switches to another lane of the queue. Lanes
/// run concurrently, each waiting for what it needs from the others (lanes.hpp).
///
/// Queued kernels (queued_kernels()) use memory of the queue in place; arguments in host memory are
/// copied to the device and, if writable, back. The host continues before a kernel is done, unless
/// something is copied back or kernels are timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "kernels/device.hpp"
#include "kernels/device/lanes.hpp"

namespace meshwright {

/// Whether the kernels of a queue are timed.
enum class QueueTiming : std::uint8_t {
  kNone,  ///< kernels run one after the other on the device; the host runs ahead
  /// Each kernel is timed. Kernels and copies run alone on the device, even with several queues:
  /// ranks that share it must not slow each other down.
  kEachKernel
};
/// What working memory contains before a kernel runs.
enum class ScratchContents : std::uint8_t {
  kUninitialized,
  kNan  ///< for tests; workspaces of tens of MB would push a kernel's inputs out of the cache
};

/// Belongs to one thread. Tables must outlive it.
class DeviceQueue {
 public:
  DeviceQueue(const KernelTable& kernels, const DeviceTable& device, QueueTiming timing,
              ScratchContents scratch = ScratchContents::kUninitialized);
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue();

  const KernelTable& kernels() const { return kernels_; }
  const DeviceTable& device() const { return device_; }
  /// Stream of the current lane.
  void* stream() const { return lanes_.stream(); }
  /// Switches to a lane, each of which has its own stream. A queue starts on lane 0.
  void switch_to_lane(int number) { lanes_.switch_to(number); }
  QueueTiming timing() const { return timing_; }
  ScratchContents scratch_contents() const { return scratch_; }

  /// Uninitialized memory of at least one byte, aligned to 256 bytes. Throws RuntimeFailure with
  /// sizes if the device is out of memory even after the queue has finished its work and no other
  /// queue on the device has freed memory for a second.
  std::byte* allocate(Bytes bytes);
  /// Same for working memory of a single call, to be freed by the device's release().
  void* working_memory(Bytes bytes);
  /// Frees memory in stream order: work enqueued earlier may still use it.
  void release(std::byte* memory);
  /// True if the whole range was allocated by this queue.
  bool holds(const void* memory, Bytes bytes) const;
  /// Same; if true, also makes stream() wait for conflicting work of other lanes, for callers that
  /// are about to use the range there. Kernels and copies of this queue do this themselves.
  bool use(const void* memory, Bytes bytes, bool writes);

  /// Copies within the memory of this queue, or between it and other allocations of the device.
  void copy(void* to, const void* from, Bytes bytes);
  /// Copies to the host after all work of the current lane, and waits for it.
  void read(void* to_host, const void* from, Bytes bytes);
  /// Copies from the host; the caller may reuse the host memory immediately.
  void write(void* to, const void* from_host, Bytes bytes);

  /// The host waits until all work in all lanes is done.
  void wait();
  /// Sets how the host waits for a stream, for callers that have to poll something else meanwhile.
  /// Empty: wait_for_stream() of the device.
  void set_wait(std::function<void(void* stream)> waits);
  /// Must be called after enqueuing work on stream() other than by this queue's kernels and copies.
  void note_work() { lanes_.note_work(); }

  /// Held by a thread while its work runs on the device; empty if kernels are not timed.
  std::unique_lock<std::recursive_mutex> take_turn() const;
  /// Runs `enqueues`, which enqueues work on stream(); with timed kernels alone on the device, and
  /// waits for it.
  void run_in_turn(const std::function<void()>& enqueues);
  /// Page-locked host memory for DeviceTable::hold, at first 0.
  std::uint32_t* gate();

 private:
  using HostMemory = std::unique_ptr<std::byte, void (*)(void*)>;
  HostMemory allocate_host(std::size_t size) const;
  /// Staging buffer in host memory, in use until the next wait().
  struct StagingBlock {
    HostMemory memory;
    std::size_t size;
  };
  struct Block {
    std::int64_t size = 0;
    BlockUses uses;
  };
  using Blocks = std::map<const std::byte*, Block>;  ///< by address
  Blocks::const_iterator block_of(const void* memory, Bytes bytes) const;
  void* wait_for_memory(Bytes bytes);
  void copy_and_wait(void* to, const void* from, Bytes bytes);
  const std::byte* stage(std::span<const std::byte> bytes);
  void reset_staging();

  const KernelTable& kernels_;
  const DeviceTable& device_;
  QueueTiming timing_;
  ScratchContents scratch_;
  std::function<void(void*)> waits_;
  Blocks blocks_;
  std::vector<StagingBlock> staging_;
  std::size_t staging_in_use_ = 0;  ///< number of blocks
  std::size_t used_of_last_ = 0;    ///< bytes of the last block in use
  HostMemory gate_;
  DeviceLanes lanes_;  ///< destroyed first: pending work reads staging buffers
};

}  // namespace meshwright
