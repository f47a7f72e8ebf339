/// Stream-ordered pool of device memory on top of plain allocations. Freed blocks are cached and
/// reused: immediately in the same stream, in other streams once the freeing stream has reached
/// that point. No stream ever waits for another.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

class BlockPool {
 public:
  /// Underlying allocator, and events as in DeviceTable.
  struct Source {
    void* (*allocate)(Bytes bytes);  ///< null: out of memory
    void (*release)(void* memory);
    void (*wait_for_all_work)();
    void* (*create_event)();
    void (*record)(void* event, void* stream);
    bool (*is_complete)(void* event);
  };
  explicit BlockPool(const Source& source) : source_(source) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Null if the device is out of memory even after the cache has been released. O(cached blocks of
  /// about that size).
  void* allocate(Bytes bytes, void* stream);
  void release(void* memory, void* stream);
  Bytes cached() const;  ///< total size of cached blocks

 private:
  struct Free {
    void* memory;
    void* stream;  ///< in which the block was freed
    void* event;
  };
  void* take_cached(std::int64_t size, void* stream);
  void release_cached();

  const Source source_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> size_of_;  ///< of all blocks from the source
  std::multimap<std::int64_t, Free> free_;           ///< by size
  std::vector<void*> events_;                        ///< unused, for reuse
};

}  // namespace meshwright
