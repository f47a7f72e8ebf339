/// Several streams of one queue, its lanes, and who uses which of its memory: work that is put on
/// one lane comes behind the work of others that it needs, and behind no other.
///
/// Nobody says what waits for what. Every use of memory is noted; where a lane uses what another
/// one has written, or writes what another one uses, its stream waits for the end of that one's
/// section: of what was put there from the moment that the lane was gone to until it was left. So
/// no wait can be forgotten, and gradients that are reduced in one lane do not stop kernels that
/// write others beside them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/device.hpp"

namespace meshwright {

/// Bytes of a block that one lane used, and when.
struct BlockUse {
  std::int64_t begin = 0, end = 0;
  int lane = 0, section = 0;
  bool writes = false;
};
using BlockUses = std::vector<BlockUse>;

/// Of one thread, as its queue; the device outlives it. O(uses of the block) a use.
class DeviceLanes {
 public:
  explicit DeviceLanes(const DeviceTable& device);
  DeviceLanes(const DeviceLanes&) = delete;
  DeviceLanes& operator=(const DeviceLanes&) = delete;
  ~DeviceLanes();

  /// Of the lane at work: number 0, until another one is gone to.
  void* stream() const { return lane_at_work().stream; }
  /// The lane, any small number, is made when it is gone to for the first time.
  void go_to(int lane);

  /// The lane at work is about to use these bytes of a block.
  void use(BlockUses& uses, std::int64_t begin, std::int64_t end, bool writes);
  /// A stream that is behind all uses of a block: the first lane's, unless it would have to wait.
  void* stream_behind(const BlockUses& uses);

  void note_work() { lane_at_work().has_work = true; }
  bool has_work() const;
  /// Calls waits(stream) for the lane at work, or for all, where there is work.
  void wait_at_work(const std::function<void(void*)>& waits);
  void wait_for_all(const std::function<void(void*)>& waits);
  /// All lanes have been waited for, and all uses have been forgotten.
  void begin_anew();
  bool are_several() const { return several_; }

 private:
  struct Lane {
    void* stream = nullptr;   ///< null: nobody has gone there yet
    std::vector<void*> ends;  ///< events, by section that has been left
    std::vector<int> behind;  ///< by lane: the last section that this one waits for; -1: none
    bool has_work = false;
    int section() const { return static_cast<int>(ends.size()); }
  };
  Lane& lane_at_work() { return lanes_[static_cast<std::size_t>(at_work_)]; }
  const Lane& lane_at_work() const { return lanes_[static_cast<std::size_t>(at_work_)]; }
  Lane& lane(int number) { return lanes_[static_cast<std::size_t>(number)]; }
  void end_section(Lane& of);
  bool is_behind(int lane, const BlockUse& use) const;
  void wait_for(int waiting, const BlockUse& use);

  const DeviceTable& device_;
  std::vector<Lane> lanes_;
  std::vector<void*> spare_events_;
  int at_work_ = 0;
  bool several_ = false;
};

}  // namespace meshwright
