#include "executor/tasks/rank_clock.hpp"

#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "kernels/device/staged_kernels.hpp"

namespace meshwright {

Ticks thread_cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Ticks(std::int64_t{now.tv_sec} * kTicksPerSecond +
               std::int64_t{now.tv_nsec} * kTicksPerNanosecond);
}

namespace {
Ticks device_time() { return to_ticks(staged_time()); }
}  // namespace

WorkTime work_time_of(Backend backend) {
  return has_device_memory(backend) ? device_time : thread_cpu_time;
}

Ticks RankClock::wall() const {
  const auto passed = std::chrono::steady_clock::now() - origin_;
  const std::int64_t nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count();
  return Ticks(std::max<std::int64_t>(0, nanoseconds) * kTicksPerNanosecond);
}

/// Absolute deadlines, so that wake-up errors do not accumulate.
void RankClock::sleep_until(Ticks moment) const {
  if ((kind_ != TimelineClock::kReplay && !is_shaped()) || !occupies_thread_) return;
  const Moment until = origin_ + std::chrono::nanoseconds(to_nanoseconds(moment));
  while (until - std::chrono::steady_clock::now() > kPollingInterval) {
    if (must_stop_ != nullptr && *must_stop_) return;
    std::this_thread::sleep_for(kPollingInterval);
    if (beats_ != nullptr) beats_->fetch_add(1, std::memory_order_relaxed);
  }
  std::this_thread::sleep_until(until);
}

void RankClock::start_task(Ticks ready, bool occupies_thread) {
  occupies_thread_ = occupies_thread;
  if (is_shaped())
    time_ = std::max(wall(), ready);  // its inputs may not have arrived yet
  else
    time_ = kind_ == TimelineClock::kWall ? wall() : ready;
  sleep_until(time_);
}

void RankClock::start_kernel() {
  if (kind_ == TimelineClock::kVirtual) work_at_start_ = work_time_();
}

void RankClock::end_kernel(Ticks price) {
  switch (kind_) {
    case TimelineClock::kVirtual:
      time_ += work_time_() - work_at_start_;
      break;
    case TimelineClock::kReplay:
      time_ += price;
      sleep_until(time_);
      break;
    case TimelineClock::kWall:
    case TimelineClock::kSimulated:
      time_ = wall();
  }
}

void RankClock::pause_kernel() {
  if (kind_ == TimelineClock::kVirtual) work_at_pause_ = work_time_();
}
void RankClock::resume_kernel() {
  if (kind_ == TimelineClock::kVirtual) work_at_start_ += work_time_() - work_at_pause_;
}

void RankClock::defer_kernel() {
  if (kind_ == TimelineClock::kVirtual) deferred_ += work_time_() - work_at_start_;
}

void RankClock::add_deferred() { time_ += std::exchange(deferred_, Ticks()); }

void RankClock::end_communication(Ticks latest, Ticks price) {
  if (kind_ == TimelineClock::kWall && links_ == LinkTime::kReal) {
    time_ = wall();
    return;
  }
  time_ = std::max(time_, latest) + price;
  if (is_shaped()) time_ = std::max(time_, wall());
  sleep_until(time_);
}

Ticks RankClock::stamp() const {
  return kind_ == TimelineClock::kReplay && occupies_thread_ ? wall() : time_;
}

}  // namespace meshwright
