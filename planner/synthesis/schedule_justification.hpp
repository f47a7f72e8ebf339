/// A random walk over schedules by alternating left- and right-packing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/random.hpp"
#include "planner/synthesis/operation_network.hpp"
#include "planner/synthesis/schedule_construction.hpp"

namespace meshwright {

struct WalkLimits {
  Ticks goal;                   ///< stop when reached: a lower bound
  std::int64_t most_steps = 0;  ///< maximum number of packings to both sides
};

/// Every step moves the start of one operation in twenty by up to two mean durations, inserts all
/// operations in the order of these times into the first gaps of their machines, does the same with
/// time reversed (see justify()), and continues from the result unless it is worse. On wide
/// plateaus of the objective this moves far: many operations at once, with all constraints
/// respected. Ignores caps that are not precedences.
class JustificationWalk {
 public:
  JustificationWalk(const OperationNetwork& network, const OperationNetwork& reversed_network);

  /// The best schedule found, at least as good as `starts`. Deterministic.
  Starts improve(Starts starts, const WalkLimits& limits);
  std::int64_t steps() const { return steps_; }

 private:
  void disturb(const Starts& starts);
  std::uint32_t random() { return xorshift32(random_state_); }

  const OperationNetwork& network_;
  const OperationNetwork& reversed_;
  ScheduleBuilder builder_, reversed_builder_;
  std::vector<std::int64_t> keys_;
  std::int64_t mean_duration_ = 0;
  std::int64_t steps_ = 0;
  std::uint32_t random_state_ = 1;
};

}  // namespace meshwright
