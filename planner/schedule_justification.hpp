/// A random walk over schedules by packing them to the left and to the right in turn.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/operation_network.hpp"
#include "planner/schedule_construction.hpp"

namespace meshwright {

struct WalkLimits {
  Ticks goal;                   ///< stop when reached: a lower bound
  std::int64_t most_steps = 0;  ///< packings to both sides
};

/// Every step moves the start of one operation in twenty by up to two mean durations, takes all
/// operations in the order of these times into the first gaps of their machines, does the same
/// backwards in time (see justify()), and goes on from the result unless it is worse. Where the
/// objective has wide plateaus, this moves far: many operations at once, all constraints kept. Does
/// not know caps that are no precedences.
class JustificationWalk {
 public:
  JustificationWalk(const OperationNetwork& network, const OperationNetwork& reversed_network);

  /// The best schedule found, at least as good as `starts`. Deterministic.
  Starts improve(Starts starts, const WalkLimits& limits);
  std::int64_t steps() const { return steps_; }

 private:
  void disturb(const Starts& starts);
  std::uint32_t random();

  const OperationNetwork& network_;
  const OperationNetwork& reversed_;
  ScheduleBuilder builder_, reversed_builder_;
  std::vector<std::int64_t> keys_;
  std::int64_t mean_duration_ = 0;
  std::int64_t steps_ = 0;
  std::uint32_t random_state_ = 1;
};

}  // namespace meshwright
