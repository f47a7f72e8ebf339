#include "executor/tasks/device_spans.hpp"

#include <algorithm>
#include <chrono>

#include "core/base/check.hpp"

namespace meshwright {

DeviceSpans::~DeviceSpans() {
  for (void* event : events_) queue_.device().destroy_event(event);
}

void DeviceSpans::record() {
  if (used_ == events_.size()) events_.push_back(queue_.device().create_event());
  queue_.device().record(events_[used_++], queue_.stream());
  queue_.note_work();
}

void DeviceSpans::start(RankClock::Moment origin) {
  queue_.wait();
  used_ = 0;
  const auto passed = std::chrono::steady_clock::now() - origin;
  const std::int64_t nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count();
  zero_ = Ticks(nanoseconds * kTicksPerNanosecond);
  record();
  queue_.wait();  // lanes are not synchronized: none may start earlier
}

void DeviceSpans::correct(std::span<TaskSpan> spans, std::size_t from) {
  queue_.wait();
  MW_CHECK(used_ >= 1 + 2 * spans.size());
  const auto at = [&](std::size_t event) {
    return zero_ + to_ticks(queue_.device().elapsed(events_.front(), events_[event]));
  };
  for (std::size_t i = from; i < spans.size(); ++i) {
    TaskSpan& span = spans[i];
    span.start = at(1 + 2 * i);
    span.end = at(2 + 2 * i);
    for (const TaskId before : graph_.dependencies_of(span.task))
      span.start = std::clamp(ends_[before.index()], span.start, span.end);
    ends_[span.task.index()] = span.end;
  }
}

}  // namespace meshwright
