/// Priority keys for a Dispatcher, from a repeated building block or from an existing schedule.
#pragma once

#include <vector>

#include "core/schedule/dispatch.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// The building block of Qi et al., arXiv:2405.15362, with real times instead of slots: one
/// micro-batch runs through all stages and back, each pass at the first free time given that
/// everything repeats every `interval`. Waits between neighboring stages extend the lifetimes of
/// activations.
struct BlockShape {
  Ticks interval;
  /// Wait before every stage of each sweep. A sweep is a run of p stages of the route: v sweeps
  /// forward, then v back.
  std::vector<Ticks> wait;
  Ticks weight_wait;  ///< between I and W
};
/// Keys of all operations of the task: their start times in the repeated block.
std::vector<Ticks> repeated_block_keys(const DispatchTask& task, const BlockShape& shape);
/// Keys taken from the start times of a schedule with the task's placement. A full backward becomes
/// I followed by W.
std::vector<Ticks> keys_of(const DispatchTask& task, const Schedule& schedule);

/// Demand of one micro-batch on a device, with passes back to back and idle devices.
struct DeviceNeed {
  Ticks work;         ///< total duration of its passes on the device
  Ticks memory_time;  ///< sum over its activations on the device: held units x lifetime
};
std::vector<DeviceNeed> needs_of_one_microbatch(const DispatchTask& task);

/// Lower bound of the interval between micro-batches: the maximum over devices of the work per
/// micro-batch and of memory-time / limit (Little's law).
Ticks least_interval(const DispatchTask& task);

}  // namespace meshwright
