/// Limits how many ranks compute at the same time, so that a kernel's time does not depend on the
/// other ranks: the virtual clock emulates one core per rank, whatever the machine has.
///
/// Ranks that share a slot are pinned to one processor. Otherwise every time slice would start with
/// the data in another processor's caches, and a processor idle in between would be given to other
/// programs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "executor/launch/rank_progress.hpp"
#include "executor/tasks/forwarding_actions.hpp"

namespace meshwright {

/// Rank r uses slot r modulo the number of slots; ranks in different slots compute concurrently,
/// ranks in one slot compute one at a time, in FIFO order. Shared by the threads of a run.
class ComputeSlots {
 public:
  explicit ComputeSlots(int at_once);
  /// Half of the hardware threads, since usually two of them share a core; at least one.
  static int default_count();
  /// Pins the calling thread, which runs this rank, to the processor of its slot. No-op if the
  /// system does not allow it.
  void pin(RankId rank) const;
  /// Waits for the slot. Throws PeerFailure if the rank is stopped meanwhile.
  void acquire(RankId rank, RankProgress& progress);
  void release(RankId rank);
  /// Whether another rank waits for the slot that this rank holds.
  bool is_contended(RankId rank);

 private:
  struct Waiting {
    std::condition_variable granted;
    bool is_next = false;
  };
  struct Slot {
    std::mutex mutex;
    std::deque<Waiting*> queue;
    bool is_free = true;
    std::optional<int> processor;
  };
  Slot& slot_of(RankId rank) { return slots_[rank.index() % slots_.size()]; }
  std::vector<Slot> slots_;
};

/// Decorator that holds a slot during each compute task. It releases the slot during collectives,
/// and between kernels after its time share if another rank is waiting, so that ranks advance in
/// lockstep: a machine that is slow for a tenth of a second then slows all ranks alike instead of
/// the one that the others wait for. Does not own actions, slots and progress, which must outlive
/// it.
class ThrottledActions final : public ForwardingActions {
 public:
  ThrottledActions(TaskActions& actions, ComputeSlots& slots, RankId rank, RankProgress& progress)
      : ForwardingActions(actions), slots_(slots), rank_(rank), progress_(progress) {
    // A rank inside a collective holds no slot: nothing to release before the wait or acquire
    // after.
    actions_.set_wait_callback([this, had_slot = false](bool begins) mutable {
      if (begins) {
        if (on_wait_) on_wait_(true);
        had_slot = has_slot_;
        release_slot();
      } else {
        if (had_slot) acquire_slot();
        if (on_wait_) on_wait_(false);
      }
    });
  }
  ~ThrottledActions() override {
    actions_.set_wait_callback({});
    release_slot();
  }
  ThrottledActions(const ThrottledActions&) = delete;
  ThrottledActions& operator=(const ThrottledActions&) = delete;

  void set_wait_callback(std::function<void(bool begins)> callback) override {
    on_wait_ = std::move(callback);
  }
  void wait_for_compute_slot() override {
    if (has_used_its_time_slice() && slots_.is_contended(rank_)) release_slot();
    acquire_slot();
  }
  void end_task(const RunTask& task) override {
    actions_.end_task(task);
    release_slot();
  }
  void compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) override {
    acquire_slot();
    actions_.compute(task, step, kernel);
  }
  Ticks communicate(const RunTask& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override {
    release_slot();
    return actions_.communicate(task, step, collective, ready);
  }
  void prepare(const RunTask& task, const Collective& collective) override {
    acquire_slot();
    actions_.prepare(task, collective);
    release_slot();
  }
  using ForwardingActions::communicate;

 private:
  static constexpr std::chrono::milliseconds kTimeSlice{1};
  bool has_used_its_time_slice() const {
    return has_slot_ && std::chrono::steady_clock::now() - acquired_at_ > kTimeSlice;
  }
  void acquire_slot();
  void release_slot();
  std::function<void(bool begins)> on_wait_;
  ComputeSlots& slots_;
  RankId rank_;
  RankProgress& progress_;
  bool has_slot_ = false;
  std::chrono::steady_clock::time_point acquired_at_;
};

}  // namespace meshwright
