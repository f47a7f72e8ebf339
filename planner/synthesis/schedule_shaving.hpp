/// Stronger lower bounds by probing halves of the windows of operations.
#pragma once

#include <cstdint>
#include <vector>

#include "planner/synthesis/constraint_propagation.hpp"
#include "planner/synthesis/operation_network.hpp"

namespace meshwright {

/// Shaving (J. Carlier and E. Pinson, "Adjustment of heads and tails for the job-shop problem",
/// 1994): if propagation refutes the first half of the window of an operation, the operation starts
/// in the second half, and propagation continues from there. Gradients in the middle of a step have
/// wide windows, since a schedule may run their micro-batch early; a few of them are probed on
/// every stage, as long as windows shrink.
class ScheduleShaving {
 public:
  ScheduleShaving(const OperationNetwork& network, ConstraintPropagation& propagation)
      : network_(network), propagation_(propagation) {}

  /// False proves that no schedule has an objective of `target` or less. True proves nothing. Stops
  /// after about `most_visits` visits of the propagation.
  bool could_meet(Ticks target, std::int64_t most_visits);

 private:
  enum class Verdict : std::uint8_t { kUnchanged, kNarrowed, kRefuted };
  Verdict shave_all();
  Verdict shave(std::int32_t operation);
  bool is_possible(std::int32_t operation, Ticks earliest, Ticks latest);

  const OperationNetwork& network_;
  ConstraintPropagation& propagation_;
  std::vector<Ticks> earliest_, latest_;
  std::int64_t last_visit_ = 0;
};

/// Raises a bound by shaving: to `known`, the value of some schedule, if possible, otherwise by
/// bisection. Stops after about `most_visits` visits of the propagation.
Ticks shaving_bound(const OperationNetwork& network, ConstraintPropagation& propagation,
                    Ticks bound, Ticks known, std::int64_t most_visits);

}  // namespace meshwright
