/// The three clocks of a run, seen by one rank.
///
///   wall     what the machine's clock says; cores, caches and schedulers included. Messages and
///            collectives take what they really take, or, with modelled links, no less than what
///            the cost model says: the machine stands for any network
///   virtual  kernels take the CPU time of this rank's thread, or what a GPU's events say they
///            took; messages and collectives what the cost model says: a rank per core (per GPU)
///            is pretended, and any network
///   replay   everything takes what the cost model says, by sleeping until the moment: proves that
///            the order of work can be carried out and takes the predicted time
#pragma once

#include <atomic>
#include <chrono>

#include "core/timeline.hpp"
#include "core/units.hpp"
#include "executor/communicator.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// What messages and collectives take under the wall clock; the others always model them.
enum class LinkTime : std::uint8_t { kReal, kModelled };

/// Time that the calling thread's kernels have taken so far: CPU time of the thread, or time of the
/// device for kernels that run there (kernels/staged_kernels.hpp).
using WorkTime = Ticks (*)();
WorkTime work_time_of(Backend backend);

class RankClock {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  /// `origin` is time zero of the step on all ranks. Where `must_stop` is set, if it is given,
  /// nobody sleeps any more, and times mean nothing. A rank that sleeps as long as the cost model
  /// says does not hang: `beats`, if given, rise meanwhile.
  RankClock(TimelineClock kind, Moment origin, LinkTime links = LinkTime::kReal,
            const std::atomic<bool>* must_stop = nullptr, Beats* beats = nullptr)
      : kind_(kind), links_(links), origin_(origin), must_stop_(must_stop), beats_(beats) {}

  /// What the virtual clock measures kernels by; CPU time unless this is called.
  void measure_by(WorkTime work_time) { work_time_ = work_time; }

  /// A task begins whose stream is free and whose inputs are there at `ready`. Tasks of other
  /// streams than compute leave the thread alone: replay and modelled links take note of them and
  /// do not sleep.
  void start_task(Ticks ready, bool occupies_thread);
  void start_kernel();
  void end_kernel(Ticks price);
  /// A wait for other ranks inside a kernel: by the virtual clock it takes no time.
  void pause_kernel();
  void resume_kernel();
  /// Ends what start_kernel() began, as part of a task still to come: by the virtual clock its time
  /// is kept until that task asks for it.
  void set_kernel_aside();
  void add_set_aside();
  /// Something shared with other ranks, the last of which was ready at `latest`.
  void end_communication(Ticks latest, Ticks price);

  /// Where this rank is, by its own account: what others are told.
  Ticks time() const { return time_; }
  /// What goes into the timeline: under replay, when the thread really
  /// woke up.
  Ticks stamp() const;
  TimelineClock kind() const { return kind_; }

 private:
  Ticks wall() const;
  void sleep_until(Ticks moment) const;
  bool is_shaped() const { return kind_ == TimelineClock::kWall && links_ == LinkTime::kModelled; }
  TimelineClock kind_;
  LinkTime links_;
  Moment origin_;
  const std::atomic<bool>* must_stop_;
  Beats* beats_;
  Ticks time_;
  WorkTime work_time_ = work_time_of(Backend::kCpu);
  Ticks work_at_start_, work_at_pause_, set_aside_;
  bool occupies_thread_ = true;
};

/// CPU time that the calling thread has used.
Ticks thread_cpu_time();

}  // namespace meshwright
