/// A pipeline step as a job shop: operations with durations on machines (devices) and precedences
/// with lags. What the bounds and the search over schedules work on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "core/stage_times.hpp"
#include "core/units.hpp"

namespace meshwright {

/// What a schedule is to make least. Every operation starts as soon as its device is free and its
/// inputs are there.
enum class ScheduleObjective : std::uint8_t {
  kMakespan,  ///< last end of any device, the first start being 0
  kPeriod     ///< largest span of one device, from its first start to its last end
};

/// Neighbour of an operation: it starts no sooner than `lag` after the other one's end.
struct Precedence {
  std::int32_t operation = 0;
  Ticks lag;
};

/// Operations F, I and W of every stage and micro-batch. All micro-batches are alike, so each
/// (stage, pass) takes them in order without loss; what is free is how a machine interleaves its
/// sequences.
struct OperationNetwork {
  int stages = 0, microbatches = 0, machines = 0;
  std::vector<Ticks> duration;
  std::vector<std::int32_t> machine;
  std::vector<std::int32_t> topological, topological_rank;
  std::vector<std::vector<std::int32_t>> of_machine;
  std::vector<std::int32_t> successor_begin,
      predecessor_begin;  ///< offsets, one more than operations
  std::vector<Precedence> successors, predecessors;
  /// Objective: largest (end + tail of its machine), with no start before the machine's release.
  std::vector<Ticks> release, tail;
  /// Limit of held stage-micro-batches by machine, where the precedences do not express it already.
  std::vector<std::optional<int>> cap;
  /// What an operation adds to what its machine holds, by (pass, stage). A forward takes when it
  /// starts, the others give back when they end. One stage-micro-batch by F and back by W, unless
  /// weigh() says otherwise.
  std::vector<int> room;
  /// Stages that a micro-batch still visits on the device of stage s after it: each will want room.
  std::vector<int> later_visits, earlier_visits;
  bool is_reversed = false;  ///< then W takes room and F gives it back
  Ticks grain{1};            ///< every end of a left-packed schedule is a multiple of it

  int size() const { return static_cast<int>(duration.size()); }
  std::span<const Precedence> after(std::int32_t operation) const {
    return slice(successors, successor_begin, operation);
  }
  std::span<const Precedence> before(std::int32_t operation) const {
    return slice(predecessors, predecessor_begin, operation);
  }
  std::int32_t id(int pass, int stage, int microbatch) const {
    return (pass * stages + stage) * microbatches + microbatch;
  }
  int room_of(std::int32_t operation) const {
    return room[static_cast<std::size_t>(operation / microbatches)];
  }
  /// 0 forward, 1 input gradient, 2 weight gradient.
  int pass_of(std::int32_t operation) const { return operation / microbatches / stages; }
  int stage_of(std::int32_t operation) const { return operation / microbatches % stages; }
  int microbatch_of(std::int32_t operation) const { return operation % microbatches; }

 private:
  static std::span<const Precedence> slice(const std::vector<Precedence>& all,
                                           const std::vector<std::int32_t>& begin,
                                           std::int32_t operation) {
    const auto i = static_cast<std::size_t>(operation);
    return std::span(all).subspan(static_cast<std::size_t>(begin[i]),
                                  static_cast<std::size_t>(begin[i + 1] - begin[i]));
  }
};

/// `caps`: by device, stage-micro-batches that may be held at once (from the start of F to the end
/// of W); empty: no limit. With one stage per device a cap k is the precedence W(j-k) → F(j).
/// The placement must have one route over all its stages.
OperationNetwork make_operation_network(const Placement& placement, int microbatches,
                                        const StageTimes& times, std::span<const int> caps);

/// Counts room in the caller's unit instead of stage-micro-batches: by stage, what a micro-batch
/// holds from the start of its forward, and what of it the input gradient gives back already; caps
/// by machine. For searches that ask room_of(); the network must not be reversed.
void weigh(OperationNetwork& network, std::span<const int> held,
           std::span<const int> freed_by_input, std::span<const int> caps);

/// Turns the objective of a network from the makespan into the period: the device that starts last
/// counts from 0, the others have their lead as tails.
struct PeriodObjective {
  Ticks offset;  ///< objective - period
  /// The first start of every device is the same in all schedules, as it is when a micro-batch
  /// visits every device once before it comes back to any. Otherwise the objective, less the
  /// offset, is only an upper bound of the period.
  bool is_exact = true;
};
PeriodObjective aim_at_period(OperationNetwork& network);

/// The same network with time running backwards: a schedule of one, mirrored, is one of the other.
OperationNetwork reversed(const OperationNetwork& network);

/// Earliest starts when machines are never busy: longest paths from the releases.
std::vector<Ticks> earliest_starts(const OperationNetwork& network);

/// Largest end + tail of a schedule given by its starts.
Ticks objective_of(const OperationNetwork& network, std::span<const Ticks> starts);

/// Puts the operations of one machine into the order of a schedule. Operations without duration
/// come before the one that starts with them, among themselves in topological order.
void sort_by_start(const OperationNetwork& network, std::span<const Ticks> starts,
                   std::vector<std::int32_t>& operations);

/// Orders of the machines by start. The result has split backwards (I and W).
Schedule to_schedule(const OperationNetwork& network, const Placement& placement,
                     std::span<const Ticks> starts);

}  // namespace meshwright
