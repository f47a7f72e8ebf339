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
void DeviceLanes::switch_to(int number) {
  if (number == current_) return;
  end_section(current_lane());
  if (static_cast<std::size_t>(number) >= lanes_.size())
    lanes_.resize(static_cast<std::size_t>(number) + 1);
  current_ = number;
  Lane& next = current_lane();
  if (next.stream != nullptr) return;
  next.stream = device_.create_stream();
  if (lanes_.front().section() > 0) wait_for(number, {.lane = 0, .section = 0});
  several_ = true;
}

void DeviceLanes::end_section(Lane& of) {
  if (spare_events_.empty()) spare_events_.push_back(device_.create_event());
  of.ends.push_back(spare_events_.back());
  spare_events_.pop_back();
  device_.record(of.ends.back(), of.stream);
}

bool DeviceLanes::is_after(int number, const BlockUse& use) const {
  const Lane& asked = lanes_[static_cast<std::size_t>(number)];
  const auto other = static_cast<std::size_t>(use.lane);
  return use.lane == number ||
         (other < asked.last_waited.size() && asked.last_waited[other] >= use.section);
}

void DeviceLanes::wait_for(int waiting, const BlockUse& use) {
  if (is_after(waiting, use)) return;
  Lane& awaited = lane(use.lane);
  if (use.section == awaited.section()) end_section(awaited);
  Lane& waits = lane(waiting);
  device_.wait(waits.stream, awaited.ends[static_cast<std::size_t>(use.section)]);
  waits.last_waited.resize(lanes_.size(), -1);
  waits.last_waited[static_cast<std::size_t>(use.lane)] = use.section;
  waits.has_work = true;
}

/// Adjacent uses by lane 0 are merged into the latest section, since work that depends on lane 0 is
/// enqueued right after what it needs. Those of other lanes are merged within a section only:
/// meanwhile these lanes go on with other parts of the block.
void DeviceLanes::use(BlockUses& uses, std::int64_t begin, std::int64_t end, bool writes) {
  if (!several_) return;
  for (const BlockUse& other : uses)
    if ((writes || other.writes) && other.begin < end && begin < other.end)
      wait_for(current_, other);
  const int section = current_lane().section();
  for (BlockUse& own : uses) {
    if (own.lane != current_ || own.writes != writes) continue;
    const bool touches = begin <= own.end && own.begin <= end;
    const bool covers = begin <= own.begin && own.end <= end;
    if (!covers && !(touches && (current_ == 0 || own.section == section))) continue;
    own = {std::min(begin, own.begin), std::max(end, own.end), current_, section, writes};
    return;
  }
  uses.push_back({begin, end, current_, section, writes});
}

/// If every lane would have to wait, picks one other than lane 0, which runs the kernels.
void* DeviceLanes::stream_after(const BlockUses& uses) {
  int last = 0;
  const auto is_after_all = [&](int number) {
    return std::ranges::all_of(uses, [&](const BlockUse& use) { return is_after(number, use); });
  };
  if (is_after_all(0)) return lane(0).stream;
  for (const BlockUse& use : uses) {
    if (is_after_all(use.lane)) return lane(use.lane).stream;
    if (use.lane != 0) last = use.lane;
  }
  for (const BlockUse& use : uses) wait_for(last, use);
  return lane(last).stream;
}

bool DeviceLanes::has_work() const {
  return std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.has_work; });
}

void DeviceLanes::wait_for_current(const std::function<void(void*)>& waits) {
  if (current_lane().has_work) waits(stream());
  current_lane().has_work = false;
}

void DeviceLanes::wait_for_all(const std::function<void(void*)>& waits) {
  for (Lane& lane : lanes_) {
    if (lane.has_work) waits(lane.stream);
    lane.has_work = false;
  }
}

void DeviceLanes::reset() {
  MW_CHECK(!has_work());
  for (Lane& lane : lanes_) {
    spare_events_.insert(spare_events_.end(), lane.ends.begin(), lane.ends.end());
    lane.ends.clear();
    lane.last_waited.clear();
  }
}

}  // namespace meshwright
