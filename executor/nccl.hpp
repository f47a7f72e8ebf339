/// NCCL as a table of functions, out of the GPU plug-in: one process and one GPU a rank. Nothing
/// waits without an end: a peer that dies, or does not come, ends in RuntimeFailure after
/// `patience`, with the communicator aborted.
///
/// NCCL itself is opened when it is first asked for (libnccl.so.2), so that the plug-in works
/// without it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "core/dtype.hpp"
#include "core/units.hpp"
#include "kernels/cuda_library.hpp"
#include "kernels/elementwise.hpp"

namespace meshwright {

/// What rank 0 makes and all others need to meet.
using NcclId = std::array<char, 128>;

/// Which rank of how many, and who they are.
struct NcclPlace {
  NcclId id = {};
  int ranks = 1, rank = 0, device = 0;
  std::chrono::milliseconds patience = std::chrono::seconds(20);
};

/// Bytes to and from one peer; 0 bytes: nothing.
struct NcclTransfer {
  int peer = 0;
  const void* from = nullptr;
  Bytes sent = {};
  void* to = nullptr;
  Bytes received = {};
};

struct NcclTable {
  std::string (*missing)() = nullptr;  ///< why NCCL cannot be used; empty: it can
  int (*version)() = nullptr;          ///< 22809 is 2.28.9
  NcclId (*make_id)() = nullptr;
  void* (*join)(const NcclPlace& place) = nullptr;
  bool (*can_split)() = nullptr;
  /// Called by all members of a communicator: those of one color become another one, as which rank
  /// of how many `place` says; its id does not count. Null where color is negative.
  void* (*split)(void* communicator, int color, const NcclPlace& place) = nullptr;
  void (*leave)(void* communicator) = nullptr;

  // Device memory, fp32 or bf16; put on a stream, see wait(). `count` elements are those of one
  // member's part in reduce_scatter (output) and all_gather (input).
  void (*all_reduce)(void* communicator, const void* from, void* to, std::int64_t count,
                     Dtype dtype, Reduction reduction, void* stream) = nullptr;
  void (*reduce_scatter)(void* communicator, const void* from, void* to, std::int64_t count,
                         Dtype dtype, void* stream) = nullptr;
  void (*all_gather)(void* communicator, const void* from, void* to, std::int64_t count,
                     Dtype dtype, void* stream) = nullptr;
  /// Bytes to and from one peer, at once: neither waits for the other. 0 bytes: nothing.
  void (*exchange)(void* communicator, int peer, const void* from, Bytes sent, void* to,
                   Bytes received, void* stream) = nullptr;
  /// Any number of those at once.
  void (*exchange_all)(void* communicator, std::span<const NcclTransfer> transfers,
                       void* stream) = nullptr;
  /// Throws, with the communicator aborted, where it has failed.
  void (*check)(void* communicator) = nullptr;
  /// Ends it for good, also while a kernel of it runs; leave() is still to be called.
  void (*abort)(void* communicator) = nullptr;
  /// The host waits for the stream, as long as the communicator's patience lasts.
  void (*wait)(void* communicator, void* stream) = nullptr;
  /// NCCL's own estimate of an all-reduce (ncclGroupSimulateEnd); negative: it has none.
  Seconds (*estimate_all_reduce)(void* communicator, std::int64_t count, Dtype dtype) = nullptr;
};

/// Null where there is no plug-in, or one that was built without NCCL's header.
inline const NcclTable* nccl_table() {
  using Get = const NcclTable* (*)();
  const auto get = reinterpret_cast<Get>(cuda_symbol("meshwright_cuda_nccl"));
  return get == nullptr ? nullptr : get();
}

}  // namespace meshwright
