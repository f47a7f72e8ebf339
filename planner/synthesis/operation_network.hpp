/// A pipeline step as a job shop: operations with durations on machines (devices) and precedences
/// with lags. The model of schedule bounds and schedule synthesis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// The objective to minimize. Every operation starts as soon as its device is free and its inputs
/// have arrived.
enum class ScheduleObjective : std::uint8_t {
  kMakespan,  ///< last end of any device, the first start being 0
  kPeriod     ///< largest span of one device, from its first start to its last end
};

/// Successor or predecessor of an operation: the later one starts at least `lag` after the end of
/// the earlier one.
struct Precedence {
  std::int32_t operation = 0;
  Ticks lag;
};

/// An operation as an index into the vectors of its network.
constexpr std::size_t at(std::int32_t operation) { return static_cast<std::size_t>(operation); }

/// Operations F, I and W of every stage and micro-batch. All micro-batches are equal, so without
/// loss each (stage, pass) processes them in order; a machine is free to interleave its sequences.
struct OperationNetwork {
  int stages = 0, microbatches = 0, machines = 0;
  std::vector<Ticks> duration;
  std::vector<std::int32_t> machine;
  std::vector<std::int32_t> topological, topological_rank;
  std::vector<std::vector<std::int32_t>> of_machine;
  std::vector<std::int32_t> successor_begin,
      predecessor_begin;  ///< offsets, one more than operations
  std::vector<Precedence> successors, predecessors;
  /// Objective: max(end + tail of the machine); no operation starts before the release of its
  /// machine.
  std::vector<Ticks> release, tail;
  /// Limit of held stage-micro-batches by machine, unless precedences already enforce it.
  std::vector<std::optional<int>> cap;
  /// Change of the memory in use on the machine, by (pass, stage). A forward acquires at its start,
  /// other passes release at their end. By default F acquires one stage-micro-batch and W releases
  /// it; weigh() changes that.
  std::vector<int> room;
  /// Number of later (earlier) stages on the device of stage s: each of them needs room as well.
  std::vector<int> later_visits, earlier_visits;
  bool is_reversed = false;  ///< then W acquires room and F releases it
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

/// Counts room in units of the caller instead of stage-micro-batches: by stage, the amount that a
/// micro-batch holds from the start of its forward, and the part that its input gradient releases;
/// caps by machine. For searches that use room_of(); the network must not be reversed.
void weigh(OperationNetwork& network, std::span<const int> held,
           std::span<const int> freed_by_input, std::span<const int> caps);

/// Changes the objective of a network from makespan to period: tails are set so that each device
/// counts from its own first start.
struct PeriodObjective {
  Ticks offset;  ///< objective - period
  /// True if the first start of every device is the same in all schedules, which holds if a
  /// micro-batch visits every device once before it returns to any. Otherwise the objective minus
  /// the offset is only an upper bound of the period.
  bool is_exact = true;
};
PeriodObjective aim_at_period(OperationNetwork& network);

/// The network with time reversed: mirrored schedules of one are schedules of the other.
OperationNetwork reversed(const OperationNetwork& network);

/// Earliest starts without machine conflicts: longest paths from the releases.
std::vector<Ticks> earliest_starts(const OperationNetwork& network);

/// The objective, max(end + tail), of a schedule given by its starts.
Ticks objective_of(const OperationNetwork& network, std::span<const Ticks> starts);

/// Sorts the operations of one machine by their starts in a schedule. Operations with zero duration
/// precede an operation with the same start; among themselves they are in topological order.
void sort_by_start(const OperationNetwork& network, std::span<const Ticks> starts,
                   std::vector<std::int32_t>& operations);

/// The machine orders by start time. The result has split backwards (I and W).
Schedule to_schedule(const OperationNetwork& network, const Placement& placement,
                     std::span<const Ticks> starts);

}  // namespace meshwright
