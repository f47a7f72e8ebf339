/// Limits how many ranks compute at the same time, so that a kernel's time does not depend on the
/// other ranks: the virtual clock emulates one core per rank, whatever the machine has.
///
/// Ranks that share a slot are pinned to one processor. Otherwise every turn would start with the
/// data in another processor's caches, and a processor idle between turns would be given to other
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
#include "executor/tasks/forwarded_actions.hpp"

namespace meshwright {

/// Rank r uses slot r modulo the number of slots; ranks in different slots compute concurrently,
/// ranks in one slot take turns in FIFO order. Shared by the threads of a run.
class Turns {
 public:
  explicit Turns(int at_once);
  /// Half of the hardware threads, since usually two of them share a core; at least one.
  static int usual_number();
  /// Pins the calling thread, which runs this rank, to the processor of its slot. No-op if the
  /// system does not allow it.
  void settle(RankId rank) const;
  /// Waits for a turn. Throws PeerFailure if the rank is stopped meanwhile.
  void take(RankId rank, RankProgress& progress);
  void give_back(RankId rank);
  /// Whether another rank waits for the turn that this rank holds.
  bool is_wanted(RankId rank);

 private:
  struct Waiting {
    std::condition_variable handed_over;
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

/// Decorator that holds a turn during each compute task. It releases the turn during collectives,
/// and between kernels after its time share if another rank is waiting, so that ranks advance in
/// lockstep: a machine that is slow for a tenth of a second then slows all ranks alike instead of
/// the one that the others wait for. Does not own actions, turns and progress, which must outlive
/// it.
class ActionsInTurn final : public ForwardedActions {
 public:
  ActionsInTurn(TaskActions& actions, Turns& turns, RankId rank, RankProgress& progress)
      : ForwardedActions(actions), turns_(turns), rank_(rank), progress_(progress) {
    // During a wait inside a collective there is no turn to release or to take back.
    actions_.tell_of_waits([this, had_turn = false](bool begins) mutable {
      if (begins) {
        if (tell_) tell_(true);
        had_turn = has_turn_;
        leave();
      } else {
        if (had_turn) enter();
        if (tell_) tell_(false);
      }
    });
  }
  ~ActionsInTurn() override {
    actions_.tell_of_waits({});
    leave();
  }
  ActionsInTurn(const ActionsInTurn&) = delete;
  ActionsInTurn& operator=(const ActionsInTurn&) = delete;

  void tell_of_waits(std::function<void(bool begins)> tell) override { tell_ = std::move(tell); }
  void wait_for_turn() override {
    if (has_had_its_share() && turns_.is_wanted(rank_)) leave();
    enter();
  }
  void end_task(const Task& task) override {
    actions_.end_task(task);
    leave();
  }
  void compute(const Task& task, const LayerStep& step, const Kernel& kernel) override {
    enter();
    actions_.compute(task, step, kernel);
  }
  Ticks communicate(const Task& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override {
    leave();
    return actions_.communicate(task, step, collective, ready);
  }
  void prepare(const Task& task, const Collective& collective) override {
    enter();
    actions_.prepare(task, collective);
    leave();
  }
  using ForwardedActions::communicate;

 private:
  static constexpr std::chrono::milliseconds kShare{1};
  bool has_had_its_share() const {
    return has_turn_ && std::chrono::steady_clock::now() - turn_began_ > kShare;
  }
  void enter();
  void leave();
  std::function<void(bool begins)> tell_;
  Turns& turns_;
  RankId rank_;
  RankProgress& progress_;
  bool has_turn_ = false;
  std::chrono::steady_clock::time_point turn_began_;
};

}  // namespace meshwright
