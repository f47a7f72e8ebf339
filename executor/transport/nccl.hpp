/// NCCL as a function table, provided by the GPU plug-in: one process and one GPU per rank. Every
/// wait is bounded: if a peer dies or does not join, calls abort the communicator and throw
/// RuntimeFailure after `watchdog_timeout`.
///
/// libnccl.so.2 is opened on first use, so that the plug-in works without it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/dtype.hpp"
#include "core/base/units.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "kernels/elementwise.hpp"

namespace meshwright {

/// ncclUniqueId: created by rank 0 and passed to all others.
using NcclId = std::array<char, 128>;

/// Rank, size and ID of a communicator.
struct NcclPlace {
  NcclId id = {};
  int ranks = 1, rank = 0, device = 0;
  std::chrono::milliseconds watchdog_timeout = std::chrono::seconds(20);
};

/// Data to and from one peer; 0 bytes: no transfer.
struct NcclTransfer {
  int peer = 0;
  const void* from = nullptr;
  Bytes sent = {};
  void* to = nullptr;
  Bytes received = {};
};

struct NcclTable {
  std::string (*missing)() = nullptr;  ///< why NCCL is unavailable; empty: available
  int (*version)() = nullptr;          ///< 22809 is 2.28.9
  NcclId (*make_id)() = nullptr;
  void* (*join)(const NcclPlace& place) = nullptr;
  bool (*can_split)() = nullptr;
  /// ncclCommSplit, called by all members: those with the same color form a new communicator with
  /// the rank and size in `place`, whose ID is ignored. Null if color is negative.
  void* (*split)(void* communicator, int color, const NcclPlace& place) = nullptr;
  void (*leave)(void* communicator) = nullptr;

  // On device memory, fp32 or bf16; enqueued on a stream, see wait(). `count` is the number of
  // elements per member in reduce_scatter (output) and all_gather (input).
  void (*all_reduce)(void* communicator, const void* from, void* to, std::int64_t count,
                     Dtype dtype, Reduction reduction, void* stream) = nullptr;
  void (*reduce_scatter)(void* communicator, const void* from, void* to, std::int64_t count,
                         Dtype dtype, void* stream) = nullptr;
  void (*all_gather)(void* communicator, const void* from, void* to, std::int64_t count,
                     Dtype dtype, void* stream) = nullptr;
  /// Sends to and receives from one peer as one NCCL group call. 0 bytes: no transfer.
  void (*exchange)(void* communicator, int peer, const void* from, Bytes sent, void* to,
                   Bytes received, void* stream) = nullptr;
  /// Any number of transfers as one group call.
  void (*exchange_all)(void* communicator, std::span<const NcclTransfer> transfers,
                       void* stream) = nullptr;
  /// If the communicator has failed asynchronously, aborts it and throws.
  void (*check)(void* communicator) = nullptr;
  /// ncclCommAbort, also while a kernel of it runs; leave() must still be called.
  void (*abort)(void* communicator) = nullptr;
  /// Waits on the host for the stream, at most for the communicator's `watchdog_timeout`.
  void (*wait)(void* communicator, void* stream) = nullptr;
};

/// Null if there is no plug-in, or it was built without NCCL's header.
inline const NcclTable* nccl_table(Backend backend) {
  using Get = const NcclTable* (*)();
  const auto get = reinterpret_cast<Get>(plugin_symbol(backend, "meshwright_nccl"));
  return get == nullptr ? nullptr : get();
}

}  // namespace meshwright
