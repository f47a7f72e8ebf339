/// Schedules by dispatching under a memory limit of every device: any placement with one route (a
/// line, a loop, a V, waves), any times, and a rule of priorities that can be searched over.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "core/stage_times.hpp"

namespace meshwright {

/// What is to be scheduled and what a device may hold. A forward of stage s takes `held[s]` of its
/// device's limit, its input gradient gives back `freed_by_input[s]`, its weight gradient the rest.
/// One unit for all: counts, or bytes of activations where chunks are unequal.
struct DispatchTask {
  Placement placement;  ///< one route over all stages
  int microbatches = 1;
  StageTimes times;                                ///< by stage
  std::vector<std::int64_t> held, freed_by_input;  ///< by stage
  /// By device; at least what one micro-batch holds on all stages of the device.
  std::vector<std::int64_t> limits;
};

/// Every stage-micro-batch counts one until its weight gradient. Caps by device; empty: no limit.
DispatchTask counted_task(const Placement& placement, int microbatches, const StageTimes& times,
                          std::span<const int> caps);

/// Who goes first on a device.
struct DispatchRule {
  /// By operation, see operation(): the smallest key wins. Keys that are the starts of some
  /// schedule give its order, packed to the left.
  std::vector<Ticks> keys;
  /// A device that could start something at time t with length l also considers what it could
  /// start until t + patience * l. 0: never waits on purpose.
  double patience = 0;
  /// How far F and I may run ahead of the order of keys: one of them starts only if its key exceeds
  /// the smallest key of those left on its device, ready or not, by no more than this. 0: strictly
  /// in order. W fills gaps whenever it can.
  Ticks slack = Ticks::max();
  friend bool operator==(const DispatchRule&, const DispatchRule&) = default;
};

/// Both figures of a schedule; see ScheduleTiming.
struct DispatchOutcome {
  Ticks makespan, period;
  friend bool operator==(const DispatchOutcome&, const DispatchOutcome&) = default;
};

/// Runs rules; keeps its scratch memory between runs.
///
/// Never ends in a deadlock of memory: a forward starts only if its device can afterwards finish
/// the micro-batches that it holds, oldest first (the banker's argument, E. W. Dijkstra, EWD 108).
/// For the micro-batches that have passed the first k of the v stages of a device that means: what
/// all of them hold, and the stages from k on for one of them, fit the limit. The condition is
/// necessary as well, since gradients come back oldest first.
class Dispatcher {
 public:
  explicit Dispatcher(const DispatchTask& task);

  /// Nothing if makespan and period would both be above `longest`. O(m S (p + v^2)).
  std::optional<DispatchOutcome> run(const DispatchRule& rule, Ticks longest = Ticks::max());
  /// Number of an operation: pass 0 is F, 1 is I, 2 is W.
  std::size_t operation(int pass, std::int32_t stage, std::int32_t microbatch) const {
    return static_cast<std::size_t>((pass * stages_ + stage) * task_.microbatches + microbatch);
  }
  /// By operation: starts of the last run that gave an outcome.
  const std::vector<Ticks>& starts() const { return starts_; }
  /// Of the last run that gave an outcome; split backwards.
  Schedule schedule() const;

 private:
  struct Visit {
    std::int32_t stage = 0;
    std::int64_t held = 0, freed_by_input = 0;
    std::int64_t held_from_here = 0;  ///< by one micro-batch on this and the later visits
    std::array<Ticks, 3> duration{};
    /// Neighbours on the route, -1 at its ends; where they are.
    std::int32_t next = -1, previous = -1;
  };
  struct Choice {
    Ticks start = Ticks::max();
    std::int32_t visit = -1, pass = 0;
    Ticks key;
  };
  struct Device {
    std::vector<Visit> visits;                      ///< in the order of the route
    std::vector<std::array<std::int32_t, 3>> done;  ///< by visit: passes started
    std::int64_t level = 0, limit = 0;
    Ticks free, first, work_left;
    bool has_started = false;
    Choice choice;
  };
  struct Step {
    std::int32_t stage = 0, pass = 0;
  };

  void reset();
  bool has_room(const Device& device, std::size_t visit) const;
  Ticks key_of(const Device& device, std::size_t visit, int pass) const;
  void choose(std::size_t device);
  void collect(const Device& device);
  void put(std::size_t device);
  void send(std::int32_t from_stage, std::int32_t to_stage, int pass, std::int32_t microbatch,
            Ticks end);
  Ticks& arrival(int pass, std::int32_t stage, std::int32_t microbatch) {
    return arrivals_[operation(pass, stage, microbatch)];
  }

  const DispatchTask& task_;
  int stages_;
  const DispatchRule* rule_ = nullptr;
  std::vector<Device> devices_;
  std::vector<std::int64_t> work_;  ///< by device, in ticks
  std::vector<Ticks> arrivals_;     ///< inputs of F and I, by pass, stage and micro-batch
  std::vector<Ticks> starts_;
  std::vector<Ticks> link_free_;  ///< by sender and receiver
  std::vector<std::vector<Step>> orders_;
  std::vector<Choice> open_;  ///< scratch of choose()
  bool is_stuck_ = false;     ///< strict orders wait for each other: whatever is ready may go
};

}  // namespace meshwright
