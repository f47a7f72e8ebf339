/// Lower bounds from limited memory, for any number of stages per device.
#pragma once

#include "core/schedule/dispatch.hpp"
#include "planner/synthesis/operation_network.hpp"

namespace meshwright {

/// Lower bound of the objective of any schedule within the memory limits of the task. The maximum
/// over devices, from first start to last end of a device, of
///   - the memory-time of all its activations divided by its limit (J. D. C. Little, "A proof for
///     the queuing formula L = lambda W", 1961), plus the memory-time unused while memory fills and
///     empties: forwards acquire and backwards release one after another;
///   - the same with levels rounded down to multiples of what a micro-batch holds on its first
///     visits: room for half a micro-batch cannot be used;
///   - its work plus its idle time before the first gradient arrives and after the last forward, if
///     the work that fits in memory is shorter than the round trip.
/// For the makespan, the time until the first micro-batch reaches the device is added. O(S^2).
Ticks memory_bound(const DispatchTask& task, ScheduleObjective objective);
/// The same for one device.
Ticks memory_bound(const DispatchTask& task, std::size_t device, ScheduleObjective objective);

}  // namespace meshwright
