#include "kernels/device/lanes.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {

DeviceLanes::DeviceLanes(const DeviceTable& device) : device_(device), lanes_(1) {
  lanes_.front().stream = device.create_stream();
}

DeviceLanes::~DeviceLanes() {
  for (Lane& lane : lanes_) {
    for (void* event : lane.ends) device_.destroy_event(event);
    if (lane.stream != nullptr) device_.destroy_stream(lane.stream);
  }
  for (void* event : spare_events_) device_.destroy_event(event);
}

/// Uses are recorded only once there are several lanes: a new lane waits for all earlier work of
/// lane 0.
void DeviceLanes::go_to(int number) {
  if (number == at_work_) return;
  end_section(lane_at_work());
  if (static_cast<std::size_t>(number) >= lanes_.size())
    lanes_.resize(static_cast<std::size_t>(number) + 1);
  at_work_ = number;
  Lane& gone_to = lane_at_work();
  if (gone_to.stream != nullptr) return;
  gone_to.stream = device_.create_stream();
  if (lanes_.front().section() > 0) wait_for(number, {.lane = 0, .section = 0});
  several_ = true;
}

void DeviceLanes::end_section(Lane& of) {
  if (spare_events_.empty()) spare_events_.push_back(device_.create_event());
  of.ends.push_back(spare_events_.back());
  spare_events_.pop_back();
  device_.record(of.ends.back(), of.stream);
}

bool DeviceLanes::is_behind(int number, const BlockUse& use) const {
  const Lane& asked = lanes_[static_cast<std::size_t>(number)];
  const auto other = static_cast<std::size_t>(use.lane);
  return use.lane == number || (other < asked.behind.size() && asked.behind[other] >= use.section);
}

void DeviceLanes::wait_for(int waiting, const BlockUse& use) {
  if (is_behind(waiting, use)) return;
  Lane& awaited = lane(use.lane);
  if (use.section == awaited.section()) end_section(awaited);
  Lane& waits = lane(waiting);
  device_.wait(waits.stream, awaited.ends[static_cast<std::size_t>(use.section)]);
  waits.behind.resize(lanes_.size(), -1);
  waits.behind[static_cast<std::size_t>(use.lane)] = use.section;
  waits.has_work = true;
}

/// Adjacent uses by lane 0 are merged into the latest section, since work that depends on lane 0 is
/// enqueued right after what it needs. Those of other lanes are merged within a section only:
/// meanwhile these lanes go on with other parts of the block.
void DeviceLanes::use(BlockUses& uses, std::int64_t begin, std::int64_t end, bool writes) {
  if (!several_) return;
  for (const BlockUse& other : uses)
    if ((writes || other.writes) && other.begin < end && begin < other.end)
      wait_for(at_work_, other);
  const int section = lane_at_work().section();
  for (BlockUse& own : uses) {
    if (own.lane != at_work_ || own.writes != writes) continue;
    const bool touches = begin <= own.end && own.begin <= end;
    const bool covers = begin <= own.begin && own.end <= end;
    if (!covers && !(touches && (at_work_ == 0 || own.section == section))) continue;
    own = {std::min(begin, own.begin), std::max(end, own.end), at_work_, section, writes};
    return;
  }
  uses.push_back({begin, end, at_work_, section, writes});
}

/// If every lane would have to wait, picks one other than lane 0, which runs the kernels.
void* DeviceLanes::stream_behind(const BlockUses& uses) {
  int last = 0;
  const auto is_behind_all = [&](int number) {
    return std::ranges::all_of(uses, [&](const BlockUse& use) { return is_behind(number, use); });
  };
  if (is_behind_all(0)) return lane(0).stream;
  for (const BlockUse& use : uses) {
    if (is_behind_all(use.lane)) return lane(use.lane).stream;
    if (use.lane != 0) last = use.lane;
  }
  for (const BlockUse& use : uses) wait_for(last, use);
  return lane(last).stream;
}

bool DeviceLanes::has_work() const {
  return std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.has_work; });
}

void DeviceLanes::wait_at_work(const std::function<void(void*)>& waits) {
  if (lane_at_work().has_work) waits(stream());
  lane_at_work().has_work = false;
}

void DeviceLanes::wait_for_all(const std::function<void(void*)>& waits) {
  for (Lane& lane : lanes_) {
    if (lane.has_work) waits(lane.stream);
    lane.has_work = false;
  }
}

void DeviceLanes::begin_anew() {
  MW_CHECK(!has_work());
  for (Lane& lane : lanes_) {
    spare_events_.insert(spare_events_.end(), lane.ends.begin(), lane.ends.end());
    lane.ends.clear();
    lane.behind.clear();
  }
}

}  // namespace meshwright
