/// Ways to build a schedule of an OperationNetwork from scratch or from another one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/operation_network.hpp"

namespace meshwright {

/// Starts of all operations.
using Starts = std::vector<Ticks>;

/// Builds schedules; keeps its scratch memory between calls.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const OperationNetwork& network);

  /// Dispatches in time order: the machine that can start soonest takes, of the operations that can
  /// start soon enough, the one of highest priority. `patience` 0: only those that can start at
  /// once (no idling on purpose); 1: all that start before the first of them could end (active
  /// schedules, Giffler and Thompson 1960). Keeps the machines' caps. Nothing if it ends in a
  /// deadlock of memory.
  std::optional<Starts> dispatch(std::span<const std::int64_t> priority, double patience);

  /// Takes operations in order of `key` (smallest first, precedences kept) and puts each into the
  /// first gap of its machine where it fits. Does not know caps.
  Starts insert_by(std::span<const std::int64_t> key);

 private:
  void refresh(std::size_t machine);
  bool has_room(std::int32_t operation) const;
  std::int32_t choose(std::size_t machine, std::span<const std::int64_t> priority,
                      double patience) const;
  void put(std::int32_t operation, Starts& starts);

  const OperationNetwork& network_;
  std::vector<std::int32_t> waiting_;  ///< predecessors not yet placed
  std::vector<Ticks> ready_;
  std::vector<std::vector<std::int32_t>> open_;  ///< by machine
  std::vector<Ticks> free_, next_start_;         ///< by machine
  std::vector<int> held_;
  std::vector<std::vector<std::pair<Ticks, Ticks>>> busy_;
};

/// Earliest starts of given machine orders; nothing if they contradict the precedences.
std::optional<Starts> starts_of_orders(const OperationNetwork& network,
                                       const std::vector<std::vector<std::int32_t>>& orders);

/// Largest number of stage-micro-batches held on each machine.
std::vector<int> peak_held(const OperationNetwork& network, std::span<const Ticks> starts);

/// Mirrors starts into the reversed network (and back): same idle time, other end.
Starts mirrored(const OperationNetwork& network, std::span<const Ticks> starts);

/// Double justification (Valls, Ballestín and Quintanilla 2005): packs everything to the right,
/// then to the left, until the objective no longer falls. Never worse than its input. Without caps
/// only.
Starts justify(const OperationNetwork& network, const OperationNetwork& reversed_network,
               ScheduleBuilder& builder, ScheduleBuilder& reversed_builder, Starts starts);

}  // namespace meshwright
