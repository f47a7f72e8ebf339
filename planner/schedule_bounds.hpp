/// Lower bounds of any schedule for given stage times, latency and memory caps: what a synthesised
/// schedule is measured against.
#pragma once

#include <cstdint>

#include "planner/constraint_propagation.hpp"
#include "planner/operation_network.hpp"

namespace meshwright {

/// Work of the busiest device.
Ticks work_bound(const OperationNetwork& network);

/// Largest one-machine bound over devices: heads and tails are longest paths (memory edges
/// included); a device takes its operations preemptively by largest tail (J. R. Jackson, 1955),
/// which is optimal for one machine, so no schedule ends sooner. O(n log n) a device.
Ticks one_machine_bound(const OperationNetwork& network);

/// Raises a bound by what propagation refutes: gallops up from `bound`, then halves what is left;
/// `known` is the value of some schedule, values are multiples of the network's grain. Every
/// refuted target is a proof; returns `known` when nothing better can exist. Ends after about
/// `most_visits` of the propagation with what is proved by then.
Ticks refutation_bound(const OperationNetwork& network, ConstraintPropagation& propagation,
                       Ticks bound, Ticks known, std::int64_t most_visits);

}  // namespace meshwright
