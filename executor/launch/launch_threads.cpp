#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "executor/launch/launch.hpp"
#include "executor/launch/supervision.hpp"
#include "executor/transport/thread_communicator.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Shared state of the threads, which a hung rank may still use after the launch has returned.
struct Ranks {
  Ranks(int count, ThreadHub::ReportSink sink)
      : hub(count, std::move(sink)), progress(static_cast<std::size_t>(count)) {}
  ThreadHub hub;
  std::vector<RankProgress> progress;
  std::mutex mutex;
  std::condition_variable changed;
  int finished = 0;
  std::optional<RankId> stopped;  ///< a rank that was stopped because another one failed
  std::optional<RankFailure> failure;

  void fail(RankFailure what) {
    {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(what);
    }
    for (RankProgress& rank : progress) rank.must_stop = true;
    hub.close();
  }

  /// Thread creation failed for this rank; later ranks are not started either.
  void cannot_start(RankId rank, RankFailure what) {
    what.rank = rank;
    fail(std::move(what));
    const std::lock_guard lock(mutex);
    finished += hub.rank_count() - rank.value;
  }
};

void run_rank(Ranks& ranks, RankId rank, const RankBody& body) {
  RankProgress& progress = ranks.progress[rank.index()];
  CrashWatch::set_rank_of_this_thread(&progress);
  ThreadCommunicator communicator(ranks.hub, rank, progress.beats);
  BodyResult end = run_body(body, communicator, progress);
  CrashWatch::set_rank_of_this_thread(nullptr);
  if (end.failure) {
    end.failure->rank = rank;
    end.failure->task = TaskId(progress.task.load());
    ranks.fail(std::move(*end.failure));
  }
  const std::lock_guard lock(ranks.mutex);
  progress.is_finished = true;
  if (end.was_stopped) ranks.stopped = rank;
  ++ranks.finished;
  ranks.changed.notify_all();
}

/// Waits until all threads have ended, or the time to stop after a failure is over. True: all have
/// ended.
bool wait_for(Ranks& ranks, const LaunchOptions& options) {
  const int count = ranks.hub.rank_count();
  Watchdog watchdog(ranks.progress, options);
  std::optional<Clock::time_point> failed_at;
  std::unique_lock lock(ranks.mutex);
  while (ranks.finished < count) {
    ranks.changed.wait_for(lock, kPollingInterval);
    if (ranks.failure) {
      if (!failed_at) failed_at = Clock::now();
      if (Clock::now() - *failed_at > options.watchdog_timeout / 4) return ranks.finished == count;
      continue;
    }
    lock.unlock();
    if (std::optional<RankFailure> failure = watchdog.poll()) ranks.fail(std::move(*failure));
    lock.lock();
  }
  return true;
}

}  // namespace

std::optional<RankFailure> run_threads(int ranks, const RankBody& body,
                                       const LaunchOptions& options) {
  const auto shared = std::make_shared<Ranks>(ranks, options.on_report);
  const CrashWatch crash_watch;
  std::vector<std::thread> threads;
  try {
    for (RankId rank(0); rank.value < ranks; ++rank.value)
      threads.emplace_back([shared, body, rank] { run_rank(*shared, rank, body); });
  } catch (...) {
    shared->cannot_start(RankId(threads.size()), failure_of_exception());
  }
  bool all_ended = false;
  try {
    all_ended = wait_for(*shared, options);
  } catch (...) {  // ranks may still run
    shared->fail(failure_of_exception());
  }
  for (std::thread& thread : threads) all_ended ? thread.join() : thread.detach();
  shared->hub.shut_sink();
  const std::lock_guard lock(shared->mutex);
  if (!shared->failure && shared->stopped) return stopped_without_reason(*shared->stopped);
  if (shared->failure) shared->failure->is_stuck = !all_ended;
  return shared->failure;
}

}  // namespace meshwright
