/// Keys for a Dispatcher: of a block that every micro-batch repeats, and of a given schedule.
#pragma once

#include <vector>

#include "core/schedule.hpp"
#include "core/schedule_dispatch.hpp"

namespace meshwright {

/// One micro-batch takes its way through all stages and back, each pass at the first time that the
/// passes placed before leave free when everything repeats every `interval`: the building block of
/// Qi et al., arXiv:2405.15362, with real times instead of slots. Waits between neighbouring stages
/// lengthen the lives of activations.
struct BlockShape {
  Ticks interval;
  /// Wait before every stage of a sweep. Sweeps are runs of p stages of the route, v forward and
  /// then v back.
  std::vector<Ticks> wait;
  Ticks weight_wait;  ///< between I and W
};
/// Keys of all operations for a dispatcher of this task: the starts of the repeated block.
std::vector<Ticks> repeated_block_keys(const DispatchTask& task, const BlockShape& shape);
/// Keys that are the starts of a schedule with the task's placement. A whole backward becomes I and
/// W in a row.
std::vector<Ticks> keys_of(const DispatchTask& task, const Schedule& schedule);

/// What one micro-batch asks of a device, passes back to back and no device ever busy.
struct DeviceNeed {
  Ticks work;         ///< of all its passes there
  Ticks memory_time;  ///< sum over its activations there: held units x time that they live
};
std::vector<DeviceNeed> needs_of_one_microbatch(const DispatchTask& task);

/// No device can repeat micro-batches faster: its work for one, or its memory-time for one over the
/// limit (Little's law), whichever is more.
Ticks least_interval(const DispatchTask& task);

}  // namespace meshwright
