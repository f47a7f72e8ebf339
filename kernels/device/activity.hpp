/// Kernels and copies on a GPU as recorded by CUPTI, attributed to the tasks that launched them.
/// Recording slows a run down, so task times are taken from runs without it.
///
/// CUPTI is loaded on first use, so that the plug-in works without it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "kernels/device/backend_plugin.hpp"

namespace meshwright {

struct DeviceActivity {
  std::string name = {};            ///< of the kernel; empty: a copy
  Bytes bytes = {};                 ///< size of a copy
  std::uint64_t task = 0;           ///< argument of enter(); 0: no task
  std::int64_t start = 0, end = 0;  ///< nanoseconds of the host's steady clock
  std::uint32_t device = 0, stream = 0;
};

struct ActivityTable {
  /// Starts recording. Returns an error message if that fails, else an empty string.
  std::string (*start)() = nullptr;
  /// Attributes work enqueued by the calling thread to `task` until leave().
  void (*enter)(std::uint64_t task) = nullptr;
  void (*leave)() = nullptr;
  /// Stops recording; returns all activities since start() by start time. The device must be idle.
  std::vector<DeviceActivity> (*stop)() = nullptr;
};

/// Null without a plug-in, or if it was built without CUPTI's header.
inline const ActivityTable* activity_table(Backend backend) {
  using Get = const ActivityTable* (*)();
  const auto get = reinterpret_cast<Get>(plugin_symbol(backend, "meshwright_activity"));
  return get == nullptr ? nullptr : get();
}

}  // namespace meshwright
