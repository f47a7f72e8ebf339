/// Memory of a device for work in streams, out of plain allocations: what was given back is kept
/// and handed out again, at once to work behind it in the same stream, to other streams when the
/// stream has come so far. Never does a stream wait for another.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/units.hpp"

namespace meshwright {

class BlockPool {
 public:
  /// Where memory comes from, and events as in DeviceTable.
  struct Source {
    void* (*allocate)(Bytes bytes);  ///< null: there is not so much
    void (*give_back)(void* memory);
    void (*wait_for_all_work)();
    void* (*create_event)();
    void (*record)(void* event, void* stream);
    bool (*has_happened)(void* event);
  };
  explicit BlockPool(const Source& source) : source_(source) {}
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Null where the device has not so much, even when nothing is kept. O(blocks kept of about that
  /// size).
  void* allocate(Bytes bytes, void* stream);
  void give_back(void* memory, void* stream);
  Bytes kept() const;

 private:
  struct Free {
    void* memory;
    void* stream;  ///< that it was given back in
    void* event;
  };
  void* take_kept(std::int64_t size, void* stream);
  void let_go_of_kept();

  const Source source_;
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> size_of_;  ///< of all that came from the source
  std::multimap<std::int64_t, Free> free_;           ///< by size
  std::vector<void*> events_;                        ///< for use again
};

}  // namespace meshwright
