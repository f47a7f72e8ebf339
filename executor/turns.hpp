/// Ranks that compute in turn, so that what a kernel takes does not depend on who else computes: by
/// the virtual clock every rank has a core of its own, whatever the machine has.
///
/// Ranks that take turns stay on one processor. Otherwise every turn finds its data in the caches
/// of another one, and a processor that nobody uses between two turns is given to other programs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "executor/forwarded_actions.hpp"
#include "executor/launch.hpp"

namespace meshwright {

/// So many ranks may compute at once: rank r together with all but those that have the same
/// remainder of r. Whoever asks first is next. Shared by the threads of a run.
class Turns {
 public:
  explicit Turns(int at_once);
  /// Half of the processor's threads, as two of them share a core as a rule; at least one.
  static int usual_number();
  /// Puts the calling thread, which is this rank's, on the processor of those it takes turns with.
  /// Where the system does not let it, it stays where it is.
  void settle(RankId rank) const;
  /// Throws PeerFailure when the rank is asked to stop meanwhile.
  void take(RankId rank, RankProgress& progress);
  void give_back(RankId rank);
  /// Whether another rank waits for the turn that this one has.
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

/// Actions of a rank that holds a turn through each compute task, but for its collectives and for
/// others that wait while it has had its share: ranks advance side by side. A machine that is slow
/// for a tenth of a second is then slow for all of them, as machines of their own would hardly be,
/// and not for the one that the others wait for. Actions, turns and progress belong to others and
/// outlive this.
class ActionsInTurn final : public ForwardedActions {
 public:
  ActionsInTurn(TaskActions& actions, Turns& turns, RankId rank, RankProgress& progress)
      : ForwardedActions(actions), turns_(turns), rank_(rank), progress_(progress) {
    // A wait inside a collective finds no turn to give back, and takes none.
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
