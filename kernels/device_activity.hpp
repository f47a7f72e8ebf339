/// What a GPU did, kernel by kernel and copy by copy, as the driver's own recorder (CUPTI) saw it,
/// joined to the tasks that put it there. Recording slows a run down: times of tasks are those of
/// runs without it.
///
/// CUPTI is opened when it is first asked for (libcupti.so.13), so that the plug-in works without
/// it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "kernels/cuda_library.hpp"

namespace meshwright {

struct DeviceActivity {
  std::string name;                 ///< of a kernel; empty: a copy
  Bytes bytes = {};                 ///< of a copy
  std::uint64_t task = 0;           ///< what enter() was called with; 0: of no task
  std::int64_t start = 0, end = 0;  ///< nanoseconds of the host's steady clock
  std::uint32_t device = 0, stream = 0;
};

struct ActivityTable {
  /// Records from here on; or why it cannot, and nothing is recorded.
  std::string (*start)() = nullptr;
  /// What the calling thread puts on the device is of this task, until leave().
  void (*enter)(std::uint64_t task) = nullptr;
  void (*leave)() = nullptr;
  /// All that was recorded since start(), by start; the device must have come to its end.
  std::vector<DeviceActivity> (*stop)() = nullptr;
};

/// Null where there is no plug-in, or one that was built without CUPTI's header.
inline const ActivityTable* activity_table() {
  using Get = const ActivityTable* (*)();
  const auto get = reinterpret_cast<Get>(cuda_symbol("meshwright_cuda_activity"));
  return get == nullptr ? nullptr : get();
}

}  // namespace meshwright
