#include "planner/search/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace meshwright {
namespace {

/// Keeps the exception of the smallest index.
class FirstFailure {
 public:
  void report(std::size_t index, std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    if (failure_ && index_ < index) return;
    index_ = index;
    failure_ = std::move(failure);
    failed_ = true;
  }
  bool failed() const { return failed_; }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_ = false;
  std::size_t index_ = 0;
  std::exception_ptr failure_;
};

}  // namespace

int thread_count(int asked) {
  if (asked > 0) return asked;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  FirstFailure failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !failure.failed(); i = next++) {
      try {
        body(i);
      } catch (...) {
        failure.report(i, std::current_exception());
      }
    }
  };
  const auto extra = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t t = 1; t < extra; ++t) others.emplace_back(work);
    } catch (const std::system_error&) {  // the system permits no more
    }
    work();
  }
  failure.rethrow();
}

}  // namespace meshwright
