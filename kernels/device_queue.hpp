/// The work of one rank on a device, in order: its streams, its memory there, and the copies by
/// which the host sees or changes that memory. There is no other way: memory of a queue is the
/// device's alone, an address of it means nothing to the host.
///
/// All work goes to one stream, until somebody goes to another lane of the queue (go_to_lane()):
/// then lanes run side by side, each behind what it needs of the others (device_lanes.hpp).
///
/// Kernels in a queue (queued_kernels()) take memory of the queue as it is; arguments that lie
/// elsewhere are copied there and, if they may have been written, back. The host goes on before a
/// kernel is done, unless something has to be copied back or kernels are timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "kernels/device.hpp"
#include "kernels/device_lanes.hpp"

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
  /// Of the lane at work.
  void* stream() const { return lanes_.stream(); }
  /// Where work is put from here on; lane 0 is there from the start, each has a stream of its own.
  void go_to_lane(int number) { lanes_.go_to(number); }
  QueueTiming timing() const { return timing_; }

  /// Undefined contents, aligned to 256 bytes; of at least one byte. RuntimeFailure, with numbers,
  /// where the device has not so much, even when all that was put on the queue is done and others
  /// on the device have given nothing back for a second.
  std::byte* allocate(Bytes bytes);
  /// The same for memory of a call, which is no tensor: given back by the device's give_back().
  void* working_memory(Bytes bytes);
  /// Work that was put on the queue before may still use it.
  void give_back(std::byte* memory);
  /// True if all of it was allocated here.
  bool holds(const void* memory, Bytes bytes) const;
  /// The same, for whoever is about to use it on stream(), which waits for what that needs of other
  /// lanes. Kernels and copies of this queue see to it themselves.
  bool use(const void* memory, Bytes bytes, bool writes);

  /// Within the memory of this queue, or between it and what the device allocated.
  void copy(void* to, const void* from, Bytes bytes);
  /// To the host, behind all that was put on the lane at work; waits for it.
  void read(void* to_host, const void* from, Bytes bytes);
  /// From the host, which may do with its memory what it likes from then on.
  void write(void* to, const void* from_host, Bytes bytes);

  /// The host waits until all that was put on the queue is done, in all lanes.
  void wait();
  /// How the host waits for a stream: for whoever has to look at other things meanwhile. Empty: as
  /// the device does.
  void wait_by(std::function<void(void* stream)> waits);
  /// To be told by whoever puts work on stream() past the kernels.
  void note_work() { lanes_.note_work(); }

 private:
  /// Memory of the host that copies are made from, until the next wait().
  struct KeptBlock {
    std::unique_ptr<std::byte, void (*)(void*)> memory;
    std::size_t size;
  };
  struct Block {
    std::int64_t size = 0;
    BlockUses uses;
  };
  using Blocks = std::map<const std::byte*, Block>;  ///< by address
  Blocks::const_iterator block_of(const void* memory, Bytes bytes) const;
  void* memory_of_others(Bytes bytes);
  void copy_at_once(void* to, const void* from, Bytes bytes);
  const std::byte* keep(std::span<const std::byte> bytes);
  void forget_kept();

  const KernelTable& kernels_;
  const DeviceTable& device_;
  QueueTiming timing_;
  std::function<void(void*)> waits_;
  Blocks blocks_;
  std::vector<KeptBlock> kept_;
  std::size_t kept_in_use_ = 0;   ///< of these blocks
  std::size_t used_of_last_ = 0;  ///< bytes of the last one in use
  DeviceLanes lanes_;             ///< go first: their work reads what is kept
};

}  // namespace meshwright
