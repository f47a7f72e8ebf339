/// Lower bounds from the best schedule of one device, for any number of stages on it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/schedule/dispatch.hpp"
#include "planner/synthesis/operation_network.hpp"

namespace meshwright {

struct DeviceBoundLimits {
  Ticks known;                         ///< objective of some schedule; no larger bound is of use
  int labels_per_state = 4;            ///< more are merged
  std::int64_t most_labels = 400'000;  ///< of all states and devices, before merging
};

/// Lower bound of the objective of any schedule within the memory limits of the task: the device
/// orders its passes as it likes within its memory, and other devices are delays without conflicts.
///
/// Dynamic programming over states, the number of micro-batches that have started each pass. A
/// label of a state holds the time when the device is free and the times when the passes in transit
/// arrive; it dominates labels that are later in everything. Where a state has too many labels, two
/// are replaced by their earliest times, which can only lower the bound (state-space relaxation, N.
/// Christofides, A. Mingozzi and P. Toth, 1981). Time grows quickly with the memory limit.
/// 0 if there are too many labels.
Ticks device_bound(const DispatchTask& task, std::size_t device, ScheduleObjective objective,
                   const DeviceBoundLimits& limits);

/// The largest one of all devices, with labels_per_state for the best device and one label for the
/// others.
Ticks device_bound(const DispatchTask& task, ScheduleObjective objective,
                   const DeviceBoundLimits& limits);

}  // namespace meshwright
