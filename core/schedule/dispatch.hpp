/// Dispatching (list scheduling) under a memory limit per device: any placement with one route
/// (line, loop, V, waves), any times, and a priority rule that can be searched over.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// The problem instance. A forward of stage s acquires `held[s]` of its device's limit, its input
/// gradient releases `freed_by_input[s]`, and its weight gradient the rest. All in the same unit:
/// counts, or bytes of activations if chunks are unequal.
struct DispatchTask {
  Placement placement;  ///< one route over all stages
  int microbatches = 1;
  StageTimes times;                                ///< by stage
  std::vector<std::int64_t> held, freed_by_input;  ///< by stage
  /// By device; at least the memory of one micro-batch on all stages of the device.
  std::vector<std::int64_t> limits;
};

/// Every micro-batch of a stage counts as one until its weight gradient. Caps by device; empty: no
/// limit.
DispatchTask counted_task(const Placement& placement, int microbatches, const StageTimes& times,
                          std::span<const int> caps);

/// Priority rule of the devices.
struct DispatchRule {
  /// By operation, see operation(): the smallest key runs first. The start times of a schedule used
  /// as keys reproduce its order, compacted to the earliest times.
  std::vector<Ticks> keys;
  /// A device that could start an operation of length l at time t also considers operations that
  /// become ready until t + patience * l. 0: never waits deliberately.
  double patience = 0;
  /// How far F and I may deviate from key order: one starts only if its key exceeds the smallest
  /// remaining key on its device, ready or not, by at most this. 0: strictly in order. W fills gaps
  /// whenever possible.
  Ticks slack = Ticks::max();
  friend bool operator==(const DispatchRule&, const DispatchRule&) = default;
};

/// Makespan and period of a schedule; see ScheduleTiming.
struct DispatchOutcome {
  Ticks makespan, period;
  friend bool operator==(const DispatchOutcome&, const DispatchOutcome&) = default;
};

/// Runs priority rules; reuses its scratch memory between runs.
///
/// Never deadlocks on memory: a forward starts only if its device can still finish the
/// micro-batches that it holds, oldest first (banker's algorithm, E. W. Dijkstra, EWD 108). For the
/// micro-batches that have passed the first k of the v stages of a device this means that their
/// memory, plus the stages from k on for one of them, fits the limit. The condition is also
/// necessary, because gradients return oldest first.
class Dispatcher {
 public:
  explicit Dispatcher(const DispatchTask& task);

  /// Returns nothing if makespan and period both exceed `longest`. O(m S (p + v^2)).
  std::optional<DispatchOutcome> run(const DispatchRule& rule, Ticks longest = Ticks::max());
  static constexpr int kForward = 0, kInput = 1, kWeight = 2;  ///< passes: F, I, W
  /// Index of an operation.
  std::size_t operation(int pass, std::int32_t stage, std::int32_t microbatch) const {
    const std::int64_t row = std::int64_t{pass} * stages_ + stage;
    return static_cast<std::size_t>(row * task_.microbatches + microbatch);
  }
  /// Start times by operation of the last run that returned an outcome.
  const std::vector<Ticks>& starts() const { return starts_; }
  /// The schedule of the last run that returned an outcome; backwards are split into I and W.
  Schedule schedule() const;

 private:
  struct Visit {
    std::int32_t stage = 0;
    std::int64_t held = 0, freed_by_input = 0;
    std::int64_t held_from_here = 0;  ///< by one micro-batch on this and later visits
    std::array<Ticks, 3> duration{};
    /// Neighboring stages on the route; -1 at its ends.
    std::int32_t next = -1, previous = -1;
  };
  struct Choice {
    Ticks start = Ticks::max();
    std::int32_t visit = -1, pass = 0;
    Ticks key;
  };
  struct Device {
    std::vector<Visit> visits;                      ///< in route order
    std::vector<std::array<std::int32_t, 3>> done;  ///< by visit: number of passes started
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
  bool is_stuck_ = false;     ///< strict orders block each other: any ready operation may start
};

}  // namespace meshwright
