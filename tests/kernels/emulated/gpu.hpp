/// A slow and strict GPU emulator: the parts of CUDA's language and runtime that the CUDA kernels
/// need, so that their sources can also be compiled by any C++ compiler and run without a GPU.
/// emulate.cmake rewrites what is not C++: launches and the declaration of dynamic shared memory.
/// Instructions are in cuda_instructions.hpp.
///
/// The threads of a block are fibers; blocks run one after the other. A thread runs until it
/// synchronizes (at a barrier, or a warp-level instruction), in ascending or descending order: if a
/// result depends on that order, a barrier is missing. Asynchronous copies into shared memory
/// arrive as late as possible. Lanes that exit, or diverge, while others wait for them are
/// reported.
///
/// Not modeled: races that the order of threads does not reveal, memory spaces, time, rounding of
/// approximate instructions, and nvcc itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/check.hpp"

namespace emulated {

inline constexpr int kLanes = 32;

struct Dim {
  unsigned x = 1, y = 1, z = 1;
  constexpr Dim() = default;
  Dim(unsigned dim_x, unsigned dim_y = 1, unsigned dim_z = 1)  // NOLINT: as CUDA's own
      : x(dim_x), y(dim_y), z(dim_z) {}
};

/// Whether the threads of a block run in descending order.
void set_descending_order(bool descending);

/// Callback of the calling thread, or null: called with true when the device starts and with false
/// when it is done, for memory that only the device may access.
void set_on_work(void (*on_work)(bool begins));
class DeviceAtWork {
 public:
  DeviceAtWork();
  DeviceAtWork(const DeviceAtWork&) = delete;
  DeviceAtWork& operator=(const DeviceAtWork&) = delete;
  ~DeviceAtWork();
};

// ---- of the calling thread ----

extern constinit thread_local Dim thread_index, block_index, block_dim, grid_dim;

/// Waits for all threads of the block that have not exited.
void meet_block();
/// Waits for the lanes of `mask`, each contributing `mine`; one of them then calls exchange(all).
using Lanes = void* (&)[kLanes];
void meet_warp(unsigned mask, void (*exchange)(Lanes lanes, unsigned mask), void* mine);
std::byte* dynamic_shared_memory();
/// Copies that arrive when the thread waits for their group.
void copy_later(void* to, const void* from, std::size_t bytes);
void end_group_of_copies();
void wait_for_copies(std::size_t groups_that_may_be_missing);

// ---- launches ----

/// Shared memory allowed by cudaFuncSetAttribute, by address of the kernel.
std::map<const void*, std::size_t>& allowed_shared_bytes();
struct Launch {
  Dim grid, block;
  std::size_t shared_bytes = 0;
  Launch(Dim grid_size, Dim block_size, std::size_t bytes = 0, const void* = nullptr)
      : grid(grid_size), block(block_size), shared_bytes(bytes) {}
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) const {
    return std::pair(*this, std::tuple<Arguments...>(arguments...));
  }
};
void run(const Launch& launch, const void* kernel, const std::function<void()>& thread);

/// kernel<<<grid, block, bytes, stream>>>(arguments)
template <class... Parameters, class... Arguments>
void operator%(void (*kernel)(Parameters...),
               const std::pair<Launch, std::tuple<Arguments...>>& call) {
  run(call.first, reinterpret_cast<const void*>(kernel), [&] {
    std::apply([&](const Arguments&... a) { kernel(static_cast<Parameters>(a)...); }, call.second);
  });
}

}  // namespace emulated
