/// Lower bounds that hold for every schedule, also with several routes (Chimera, DualPipe), slices
/// of the sequence (Seq1F1B, TeraPipe) and a split output layer: weaker than schedule_bounds.hpp,
/// which needs one route of whole micro-batches.
#pragma once

#include "core/schedule.hpp"
#include "core/stage_times.hpp"

namespace meshwright {

/// Work of the busiest device: no period is shorter. An overlapped pair counts what it takes.
Ticks busiest_device_work(const Schedule& schedule, const StageTimes& times);

/// No order of the same passes ends sooner. The larger of
///   device: the shortest way to any of its stages, then all its work;
///   route: one micro-batch there and back; with k slices the last stage does all k forwards and
///          all k backwards between the arrival of the first slice and its way back. A split output
///          layer adds S, T if a barrier waits for it, and the messages of the barriers.
Ticks route_bound(const Schedule& schedule, const StageTimes& times);

}  // namespace meshwright
