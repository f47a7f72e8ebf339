/// Lower bounds of the objective of any schedule for given stage times, latency and memory caps.
#pragma once

#include <cstdint>

#include "planner/synthesis/constraint_propagation.hpp"
#include "planner/synthesis/operation_network.hpp"

namespace meshwright {

/// Total work of the busiest device.
Ticks work_bound(const OperationNetwork& network);

/// Maximum of the one-machine bounds of all devices: heads and tails are longest paths (including
/// memory edges); a device runs its operations preemptively by largest tail (J. R. Jackson, 1955),
/// which is optimal for one machine. O(n log n) per device.
Ticks one_machine_bound(const OperationNetwork& network);

/// Raises a bound to the largest target refuted by propagation: galloping search up from `bound`,
/// then bisection. `known` is the value of some schedule; all values are multiples of the network's
/// grain. Every refuted target is a proof; returns `known` if no better schedule exists. Stops
/// after about `most_visits` visits of the propagation.
Ticks refutation_bound(const OperationNetwork& network, ConstraintPropagation& propagation,
                       Ticks bound, Ticks known, std::int64_t most_visits);

}  // namespace meshwright
