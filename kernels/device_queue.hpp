/// The work of one rank on a device, in order: its stream, the memory that host and device both
/// address, and what the host must leave alone until the device has come that far.
///
/// Kernels in a queue (queued_kernels()) take memory of the queue as it is; only arguments that lie
/// elsewhere are copied there and, if they may have been written, back. The host goes on before a
/// kernel is done, unless something has to be copied back or kernels are timed. So memory of the
/// queue may be read or written by the host only after wait(), and until the next kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "kernels/device.hpp"

namespace meshwright {

/// What is wanted of a queue beside its results.
enum class QueueTiming : std::uint8_t {
  kNone,       ///< kernels follow each other on the device; the host runs ahead
  kEachKernel  ///< each has the device for itself, also among several queues, and is timed
};

/// Belongs to one thread. Table and device outlive it.
class DeviceQueue {
 public:
  DeviceQueue(const KernelTable& kernels, const DeviceTable& device, QueueTiming timing);
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue();

  const KernelTable& kernels() const { return kernels_; }
  const DeviceTable& device() const { return device_; }
  void* stream() const { return stream_; }
  QueueTiming timing() const { return timing_; }

  /// Whether there is memory that both sides address. If not, tensors stay on the host and every
  /// argument is copied.
  bool shares_memory() const { return device_.shares_memory(); }
  /// Undefined contents, aligned to 256 bytes; of at least one byte.
  std::byte* allocate(Bytes bytes);
  /// Waits first, as work may still use it.
  void give_back(std::byte* memory);
  /// True if all of it was allocated here.
  bool holds(const void* memory, Bytes bytes) const;

  /// A copy of `bytes` that stays until the next wait(): for copies to the device.
  const std::byte* keep(std::span<const std::byte> bytes);
  /// The host waits until all that was put on the queue is done.
  void wait();
  /// How the host waits for a stream: for whoever has to look at other things meanwhile. Empty: as
  /// the device does.
  void wait_by(std::function<void(void* stream)> waits) { waits_ = std::move(waits); }
  /// Within the memory of this queue, or between it and what the device allocated.
  void copy(void* to, const void* from, Bytes bytes);
  /// To be told by whoever puts work on stream() past the kernels.
  void note_work() { has_work_ = true; }

 private:
  const KernelTable& kernels_;
  const DeviceTable& device_;
  QueueTiming timing_;
  void* stream_;
  bool has_work_ = false;
  std::function<void(void*)> waits_;
  std::map<const std::byte*, std::int64_t> blocks_;  ///< size by address
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

}  // namespace meshwright
