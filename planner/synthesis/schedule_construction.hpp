/// Builds schedules of an OperationNetwork from scratch or from other schedules.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/synthesis/operation_network.hpp"

namespace meshwright {

/// Start times of all operations.
using Starts = std::vector<Ticks>;

/// Builds schedules; reuses its scratch memory between calls.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(const OperationNetwork& network);

  /// Dispatches in time order: the machine that can start earliest takes, among the operations that
  /// can start soon enough, the one with the highest priority. `patience` 0: only operations that
  /// can start at once (non-delay schedules); 1: all that can start before the first of them could
  /// end (active schedules, Giffler and Thompson 1960). Respects the memory caps; nullopt if they
  /// cause a deadlock.
  std::optional<Starts> dispatch(std::span<const std::int64_t> priority, double patience);

  /// Inserts operations in order of `key` (smallest first, respecting precedences), each into the
  /// first gap of its machine where it fits. Ignores memory caps.
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

/// Earliest starts for given machine orders; nullopt if they contradict the precedences.
std::optional<Starts> starts_of_orders(const OperationNetwork& network,
                                       const std::vector<std::vector<std::int32_t>>& orders);

/// Largest number of stage-micro-batches held on each machine.
std::vector<int> peak_held(const OperationNetwork& network, std::span<const Ticks> starts);

/// Maps a schedule to the reversed network (and back).
Starts mirrored(const OperationNetwork& network, std::span<const Ticks> starts);

/// Double justification (Valls, Ballestín and Quintanilla 2005): right-packs, then left-packs all
/// operations, until the objective no longer decreases. Never worse than its input. Only for
/// networks without caps.
Starts justify(const OperationNetwork& network, const OperationNetwork& reversed_network,
               ScheduleBuilder& builder, ScheduleBuilder& reversed_builder, Starts starts);

}  // namespace meshwright
