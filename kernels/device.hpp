/// Memory, streams and events of a back end as a table of functions. On the CPU they complete
/// immediately, on a GPU in stream order.
///
/// Streams and events are opaque handles. A null stream is the device's default stream; a stream
/// runs its work in order and concurrently with other streams. Memory is freed in stream order:
/// work enqueued earlier may still use it. Failures throw RuntimeFailure, naming the call.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

struct DeviceDescription {
  std::string name = {};  ///< "NVIDIA H200"
  Bytes memory = {}, free_memory = {};
  Bytes l2_cache = {};
  int multiprocessors = 0;
  int major = 0, minor = 0;   ///< compute capability
  std::string identity = {};  ///< UUID; distinguishes identical cards
  std::string driver = {};    ///< versions of the driver and of the CUDA runtime
  std::string libraries =
      {};                  ///< those that kernels use, with versions: "cuBLASLt 13.1.0, no cuDNN"
  std::string state = {};  ///< "SM clock 345 of 1980 MHz, power limit 700 W, 18 NVLinks"
};

struct DeviceTable {
  Backend backend = Backend::kCpu;
  /// Why no device can be used; empty if at least one can.
  std::string (*missing)() = nullptr;
  int (*count)() = nullptr;
  DeviceDescription (*describe)(int device) = nullptr;
  /// Selects the device for the calling thread.
  void (*select)(int device) = nullptr;
  /// Of the selected device: memory available to allocate(), and total memory.
  Bytes (*free_memory)() = nullptr;
  Bytes (*memory)() = nullptr;

  /// Device memory, not accessible from the host, aligned to 256 bytes. Null if out of memory;
  /// allocated_on() throws instead.
  void* (*allocate)(Bytes bytes, void* stream) = nullptr;
  void (*release)(void* memory, void* stream) = nullptr;
  /// Pinned host memory for asynchronous copies, aligned to 64 bytes; null if out of memory.
  void* (*allocate_host)(Bytes bytes) = nullptr;
  void (*release_host)(void* memory) = nullptr;
  /// Between host and device in either direction, or within one of them. Host memory must stay
  /// valid and unchanged until the stream has executed the copy.
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
  bool (*is_complete)(void* event) = nullptr;
  /// Keeps the stream idle until `*gate`, in page-locked host memory, is not 0, but at most for
  /// `limit`.
  void (*hold)(const std::uint32_t* gate, Seconds limit, void* stream) = nullptr;
  /// Time between two recorded events that have completed.
  Seconds (*elapsed)(void* first, void* second) = nullptr;
};

/// Like allocate(), but throws RuntimeFailure with requested, free and total size if out of memory.
void* allocated_on(const DeviceTable& device, Bytes bytes, void* stream);

/// The host as a single device, with the memory of the process.
const DeviceTable& host_device();

}  // namespace meshwright
