/// Parallel loops over independent items.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace meshwright {

/// Number of threads: `asked`, or one per core if it is 0.
int thread_count(int asked);

/// Threads that wait for loops, for those who run many short ones.
class ThreadTeam {
 public:
  /// Up to `threads` threads with that of the caller, fewer if the system permits no more. They are
  /// started by the first loop that has work for them.
  explicit ThreadTeam(int threads) : threads_wanted_(threads) {}
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;
  ~ThreadTeam();

  /// Calls body(i) once for every i < count, in any order, and returns after the last call. If
  /// calls throw, no further items are started, and the exception of the smallest i is rethrown.
  /// body must only write data of item i. One loop at a time.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  struct Loop;
  void start_threads(std::size_t wanted);
  void work_on_loops();

  int threads_wanted_;
  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  Loop* loop_ = nullptr;     ///< the current one; null between loops
  std::uint64_t loops_ = 0;  ///< begun so far
  std::size_t working_ = 0;  ///< threads in the current loop
  bool stops_ = false;
  std::vector<std::jthread> others_;
};

/// One loop of a ThreadTeam.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace meshwright
