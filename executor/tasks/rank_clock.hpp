/// The three clocks of a run, seen by one rank.
///
///   wall     real time, including effects of cores, caches and schedulers. Messages and
///            collectives take their real time or, with modeled links, at least the time of the
///            cost model, to emulate another network
///   virtual  kernels take the CPU time of this rank's thread or the time between GPU events,
///            messages and collectives the time of the cost model: emulates one core or GPU per
///            rank and any network
///   replay   everything takes the time of the cost model, by sleeping: checks that the order of
///            the tasks can be run and takes the predicted time
#pragma once

#include <atomic>
#include <chrono>

#include "core/base/units.hpp"
#include "core/timeline/timeline.hpp"
#include "executor/transport/communicator.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Duration of messages and collectives under the wall clock; the other clocks always model it.
enum class LinkTime : std::uint8_t { kReal, kModeled };

/// Accumulated kernel time of the calling thread: its CPU time, or device time for kernels that run
/// on a device (kernels/device/staged_kernels.hpp).
using WorkTime = Ticks (*)();
WorkTime work_time_of(Backend backend);

class RankClock {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  /// `origin` is time zero of the step on all ranks. Once `must_stop` (if given) is set, the clock
  /// no longer sleeps and its times are meaningless. While sleeping it increments `beats` (if
  /// given), so that the rank is not taken for hung.
  RankClock(TimelineClock kind, Moment origin, LinkTime links = LinkTime::kReal,
            const std::atomic<bool>* must_stop = nullptr, Beats* beats = nullptr)
      : kind_(kind), links_(links), origin_(origin), must_stop_(must_stop), beats_(beats) {}

  /// Sets how the virtual clock measures kernels; default: CPU time.
  void measure_by(WorkTime work_time) { work_time_ = work_time; }

  /// Starts a task whose stream is free and whose inputs are available at `ready`. Tasks on streams
  /// other than compute do not occupy the thread: replay and modeled links account for them without
  /// sleeping.
  void start_task(Ticks ready, bool occupies_thread);
  void start_kernel();
  void end_kernel(Ticks price);
  /// A wait for other ranks inside a kernel takes no time by the virtual clock.
  void pause_kernel();
  void resume_kernel();
  /// Ends the kernel of start_kernel() but attributes its virtual time to a later task, which adds
  /// it with add_deferred().
  void defer_kernel();
  void add_deferred();
  /// Ends a communication whose last participant was ready at `latest`.
  void end_communication(Ticks latest, Ticks price);

  /// Current time of this rank, as sent with its messages.
  Ticks time() const { return time_; }
  /// Time for the timeline: under replay, when the thread really woke up.
  Ticks stamp() const;
  TimelineClock kind() const { return kind_; }

 private:
  Ticks wall() const;
  void sleep_until(Ticks moment) const;
  bool is_shaped() const { return kind_ == TimelineClock::kWall && links_ == LinkTime::kModeled; }
  TimelineClock kind_;
  LinkTime links_;
  Moment origin_;
  const std::atomic<bool>* must_stop_;
  Beats* beats_;
  Ticks time_;
  WorkTime work_time_ = work_time_of(Backend::kCpu);
  Ticks work_at_start_, work_at_pause_, deferred_;
  bool occupies_thread_ = true;
};

/// CPU time used by the calling thread.
Ticks thread_cpu_time();

}  // namespace meshwright
