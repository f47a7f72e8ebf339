/// Lower bounds for every schedule, including several routes (Chimera, DualPipe), sequence slices
/// (Seq1F1B, TeraPipe) and a split output layer. Weaker than schedule_bounds.hpp, which requires
/// one route of whole micro-batches.
#pragma once

#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// Work of the busiest device, a lower bound of the period. Overlapped pairs count with their time
/// as a pair.
Ticks busiest_device_work(const Schedule& schedule, const StageTimes& times);

/// Lower bound of the makespan over all orders of the same passes. The maximum of
///   device: the shortest path to any of its stages, then all its work;
///   route: forward and backward of one micro-batch; with k slices, the last stage runs all k
///          forwards and all k backwards between the arrival of the first slice and its return. A
///          split output layer adds S, T if a barrier waits for it, and the barrier messages.
Ticks route_bound(const Schedule& schedule, const StageTimes& times);

}  // namespace meshwright
