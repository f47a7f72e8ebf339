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
  /// Of the selected device: what allocate() could still give, and all that it has.
  Bytes (*free_memory)() = nullptr;
  Bytes (*memory)() = nullptr;

  /// Memory of the device, which the host cannot touch, aligned to 256 bytes. Null where there is
  /// not so much left: allocated_on() is for those who cannot go on then.
  void* (*allocate)(Bytes bytes, void* stream) = nullptr;
  void (*give_back)(void* memory, void* stream) = nullptr;
  /// Memory of the host that copies need not wait for, aligned to 64 bytes; null: none is left.
  void* (*allocate_on_host)(Bytes bytes) = nullptr;
  void (*give_back_on_host)(void* memory) = nullptr;
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

/// allocate(), or RuntimeFailure with how much was asked for and how much there is.
void* allocated_on(const DeviceTable& device, Bytes bytes, void* stream);

/// The host itself: one device, memory of the process.
const DeviceTable& host_device();

}  // namespace meshwright
