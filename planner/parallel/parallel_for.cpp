#include "planner/parallel/parallel_for.hpp"

#include <algorithm>
#include <exception>
#include <system_error>

namespace meshwright {

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

struct ThreadTeam::Loop {
  std::size_t count = 0;
  const std::function<void(std::size_t)>& body;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex = {};
  std::size_t failed_index = 0;
  std::exception_ptr failure = {};  ///< of the smallest index

  void work() {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (failure && failed_index < i) continue;
        failed_index = i;
        failure = std::current_exception();
        failed = true;
      }
    }
  }
};

ThreadTeam::~ThreadTeam() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  begun_.notify_all();
}

void ThreadTeam::start_threads(std::size_t wanted) {
  try {
    while (others_.size() < wanted) others_.emplace_back([this] { work_on_loops(); });
  } catch (const std::system_error&) {  // the system permits no more
  }
}

void ThreadTeam::work_on_loops() {
  std::unique_lock lock(mutex_);
  for (std::uint64_t seen = 0;;) {
    begun_.wait(lock, [&] { return stops_ || (loop_ != nullptr && loops_ != seen); });
    if (stops_) return;
    seen = loops_;
    Loop& loop = *loop_;
    ++working_;
    lock.unlock();
    loop.work();
    lock.lock();
    if (--working_ == 0) ended_.notify_one();
  }
}

void ThreadTeam::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  Loop loop{.count = count, .body = body};
  const auto wanted = std::min(count, static_cast<std::size_t>(std::max(1, threads_wanted_)));
  if (wanted > 1) {
    start_threads(wanted - 1);
    {
      const std::scoped_lock lock(mutex_);
      loop_ = &loop;
      ++loops_;
    }
    begun_.notify_all();
  }
  loop.work();
  if (wanted > 1) {
    std::unique_lock lock(mutex_);
    loop_ = nullptr;
    ended_.wait(lock, [&] { return working_ == 0; });
  }
  if (loop.failure) std::rethrow_exception(loop.failure);
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  ThreadTeam(threads).for_each(count, body);
}

}  // namespace meshwright
