/// What limited memory costs at least, for any number of stages per device.
#pragma once

#include "core/schedule_dispatch.hpp"
#include "planner/operation_network.hpp"

namespace meshwright {

/// No schedule of the task is shorter, on account of what its devices may hold. The largest over
/// devices, from the first start to the last end of a device, of
///   - memory-time of all its activations over its limit (J. D. C. Little, "A proof for the queuing
///     formula L = lambda W", 1961), with what filling and emptying the memory leaves unused: one
///     forward after the other takes, one backward after the other gives back;
///   - the same with levels rounded down to multiples of what a micro-batch holds on its first
///     visits: room for half a micro-batch is of little use;
///   - its work, and its idle time before the first gradient arrives and after the last forward,
///     when no more work fits in memory than waiting for the round trip takes.
/// For the makespan the way of the first micro-batch to the device comes on top. O(S^2).
Ticks memory_bound(const DispatchTask& task, ScheduleObjective objective);

}  // namespace meshwright
