/// Memory, streams and events of a back end, as a table of functions like the kernels'. For the CPU
/// they do at once what a GPU does in the order of a stream.
///
/// Streams and events are opaque. A null stream is the device's default; a stream runs its work in
/// order, next to others. Memory given back in the order of a stream may still be used by work put
/// on it before. What fails is RuntimeFailure, naming the call.
#pragma once

#include <string>

#include "core/units.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

struct DeviceDescription {
  std::string name = {};  ///< "NVIDIA H200"
  Bytes memory = {}, free_memory = {};
  Bytes level_two_cache = {};
  int multiprocessors = 0;
  int major = 0, minor = 0;   ///< compute capability
  std::string identity = {};  ///< unique: which of several equal cards
  std::string driver = {};    ///< version of the driver and of the run-time library
};

struct DeviceTable {
  Backend backend = Backend::kCpu;
  /// Why no device can be used; empty: at least one can.
  std::string (*missing)() = nullptr;
  int (*count)() = nullptr;
  DeviceDescription (*describe)(int device) = nullptr;
  /// The device of what the calling thread does from now on.
  void (*select)(int device) = nullptr;

  void* (*allocate)(Bytes bytes, void* stream) = nullptr;  ///< aligned to 256 bytes
  void (*give_back)(void* memory, void* stream) = nullptr;
  /// Memory that host and device address alike, at home on the device, aligned to 256 bytes; at
  /// once, whatever streams do. Only where shares_memory().
  bool (*shares_memory)() = nullptr;
  void* (*allocate_shared)(Bytes bytes) = nullptr;
  void (*give_back_shared)(void* memory) = nullptr;
  /// Brings shared memory to the device, so that the next kernel does not have to.
  void (*bring)(const void* memory, Bytes bytes, void* stream) = nullptr;
  /// Between host and device, either way, or within one. Host memory must stay as it is until the
  /// stream has come that far.
  void (*copy)(void* to, const void* from, Bytes bytes, void* stream) = nullptr;
  void (*fill)(void* to, int byte, Bytes bytes, void* stream) = nullptr;

  void* (*create_stream)() = nullptr;
  void (*destroy_stream)(void* stream) = nullptr;
  void (*wait_for_stream)(void* stream) = nullptr;  ///< the host waits

  void* (*create_event)() = nullptr;
  void (*destroy_event)(void* event) = nullptr;
  void (*record)(void* event, void* stream) = nullptr;
  void (*wait)(void* stream, void* event) = nullptr;  ///< the stream waits, the host does not
  void (*wait_for_event)(void* event) = nullptr;      ///< the host waits
  bool (*has_happened)(void* event) = nullptr;
  /// The stream does nothing for so long.
  void (*delay)(Seconds time, void* stream) = nullptr;
  /// Time between two recorded events that have happened.
  Seconds (*between)(void* first, void* second) = nullptr;
};

/// The host itself: one device, memory of the process.
const DeviceTable& host_device();

}  // namespace meshwright
