/// What a rank shares with its launcher while it runs.
#pragma once

#include <atomic>
#include <cstdint>

#include "executor/transport/communicator.hpp"

namespace meshwright {

/// Progress of a rank as its launcher sees it. In shared memory if ranks are processes, so that it
/// survives the death of the rank.
struct RankProgress {
  Beats beats{0};                        ///< heartbeats: kernels and pieces of messages
  std::atomic<std::int32_t> task{-1};    ///< the running task; -1: none
  std::atomic<std::int32_t> signal{0};   ///< the fatal signal a thread caught; 0: none
  std::atomic<bool> is_waiting{false};   ///< waits for another rank
  std::atomic<bool> is_finished{false};  ///< its body has returned
  std::atomic<bool> is_on_disk{false};   ///< file I/O, which may take long
  /// Set by the launcher: its process does not answer, as if it was suspended or its host was gone.
  std::atomic<bool> is_unresponsive{false};
  /// Set by the launcher: the rank throws PeerFailure before its next task.
  std::atomic<bool> must_stop{false};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<std::int32_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

/// Sets a flag of the progress during its lifetime.
class FlagGuard {
 public:
  explicit FlagGuard(std::atomic<bool>& flag) : flag_(flag) { flag_ = true; }
  ~FlagGuard() { flag_ = false; }
  FlagGuard(const FlagGuard&) = delete;
  FlagGuard& operator=(const FlagGuard&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace meshwright
