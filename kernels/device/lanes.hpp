/// The lanes (streams) of one queue and their uses of its memory. Work on a lane waits for exactly
/// that work on other lanes that it depends on.
///
/// Dependencies are derived, not declared: every use of memory is recorded. When a lane reads what
/// another lane has written, or writes what another lane uses, its stream waits for the end of the
/// other lane's section, that is, the work enqueued between switching to that lane and leaving it.
/// So no wait can be forgotten, and reducing gradients in one lane does not block kernels that
/// write other gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/device.hpp"

namespace meshwright {

/// A range of bytes of a block, and the section of the lane that used it.
struct BlockUse {
  std::int64_t begin = 0, end = 0;
  int lane = 0, section = 0;
  bool writes = false;
};
using BlockUses = std::vector<BlockUse>;

/// Belongs to one thread, like its queue; the device must outlive it. O(uses of the block) per use.
class DeviceLanes {
 public:
  explicit DeviceLanes(const DeviceTable& device);
  DeviceLanes(const DeviceLanes&) = delete;
  DeviceLanes& operator=(const DeviceLanes&) = delete;
  ~DeviceLanes();

  /// Stream of the current lane, which is lane 0 until switch_to().
  void* stream() const { return current_lane().stream; }
  /// Switches to a lane (a small number), which is created on first use.
  void switch_to(int lane);

  /// Makes the current lane wait for conflicting uses of these bytes, and records its own use.
  void use(BlockUses& uses, std::int64_t begin, std::int64_t end, bool writes);
  /// A stream ordered after all uses of a block: lane 0's, unless that would have to wait.
  void* stream_after(const BlockUses& uses);

  void note_work() { current_lane().has_work = true; }
  bool has_work() const;
  /// Calls waits(stream) for the current lane, or for all lanes, if there is unfinished work.
  void wait_for_current(const std::function<void(void*)>& waits);
  void wait_for_all(const std::function<void(void*)>& waits);
  /// Resets all sections. All lanes must have been waited for; the caller drops all BlockUses.
  void reset();
  bool has_several() const { return several_; }

 private:
  struct Lane {
    void* stream = nullptr;        ///< null: not created yet
    std::vector<void*> ends;       ///< events, by completed section
    std::vector<int> last_waited;  ///< by lane: last section that this lane waits for; -1: none
    bool has_work = false;
    int section() const { return static_cast<int>(ends.size()); }
  };
  Lane& current_lane() { return lanes_[static_cast<std::size_t>(current_)]; }
  const Lane& current_lane() const { return lanes_[static_cast<std::size_t>(current_)]; }
  Lane& lane(int number) { return lanes_[static_cast<std::size_t>(number)]; }
  void end_section(Lane& of);
  bool is_after(int lane, const BlockUse& use) const;
  void wait_for(int waiting, const BlockUse& use);

  const DeviceTable& device_;
  std::vector<Lane> lanes_;
  std::vector<void*> spare_events_;
  int current_ = 0;
  bool several_ = false;
};

}  // namespace meshwright
