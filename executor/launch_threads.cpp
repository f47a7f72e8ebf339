#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "executor/launch.hpp"
#include "executor/thread_communicator.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{50};  ///< how often the watchdog looks

/// All that the threads touch: a rank that hangs may outlive the launch and must find it there.
struct Ranks {
  explicit Ranks(int count) : hub(count), progress(static_cast<std::size_t>(count)) {}
  ThreadHub hub;
  std::vector<RankProgress> progress;
  std::mutex mutex;
  std::condition_variable changed;
  int finished = 0;
  std::optional<RankFailure> failure;

  void fail(RankFailure what) {
    {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(what);
    }
    hub.close();
  }
};

void run_rank(Ranks& ranks, RankId rank, const RankBody& body) {
  RankProgress& progress = ranks.progress[rank.index()];
  const auto failed = [&](std::string cause) {
    ranks.fail({.rank = rank, .task = TaskId(progress.task.load()), .cause = std::move(cause)});
  };
  try {
    ThreadCommunicator communicator(ranks.hub, rank);
    body(communicator, progress);
  } catch (const PeerFailure&) {
    // Another rank has said why.
  } catch (const std::exception& error) {
    failed(error.what());
  } catch (...) {
    failed("an unknown exception");
  }
  const std::lock_guard lock(ranks.mutex);
  ++ranks.finished;
  ranks.changed.notify_all();
}

/// Notices when no rank has moved for a while.
class Watchdog {
 public:
  Watchdog(Ranks& ranks, const LaunchOptions& options) : ranks_(ranks), options_(options) {}

  void look() {
    if (options_.interrupted != nullptr && options_.interrupted->load())
      return ranks_.fail({.rank = RankId(0), .cause = "interrupted"});
    std::int64_t beats = 0;
    for (const RankProgress& progress : ranks_.progress) beats += progress.beats.load();
    const Clock::time_point now = Clock::now();
    if (beats != beats_) {
      beats_ = beats;
      moved_ = now;
    } else if (now - moved_ > options_.patience) {
      ranks_.fail(hanging());
    }
  }

 private:
  /// The rank that does not wait for another one, or the first of a deadlock.
  RankFailure hanging() const {
    std::size_t culprit = 0;
    for (std::size_t i = ranks_.progress.size(); i-- > 0;)
      if (!ranks_.progress[i].is_waiting.load()) culprit = i;
    const double seconds = std::chrono::duration<double>(options_.patience).count();
    return {.rank = RankId(culprit),
            .task = TaskId(ranks_.progress[culprit].task.load()),
            .cause = "hangs: no rank has moved for " + std::to_string(seconds) + " s"};
  }

  Ranks& ranks_;
  const LaunchOptions& options_;
  std::int64_t beats_ = -1;
  Clock::time_point moved_ = Clock::now();
};

}  // namespace

std::optional<RankFailure> run_threads(int ranks, const RankBody& body,
                                       const LaunchOptions& options) {
  const auto shared = std::make_shared<Ranks>(ranks);
  std::vector<std::thread> threads;
  for (int i = 0; i < ranks; ++i)
    threads.emplace_back([shared, body, i] { run_rank(*shared, RankId(i), body); });
  Watchdog watchdog(*shared, options);
  std::unique_lock lock(shared->mutex);
  std::optional<Clock::time_point> failed_at;
  while (shared->finished < ranks) {
    shared->changed.wait_for(lock, kLook);
    if (shared->failure && !failed_at) failed_at = Clock::now();
    if (failed_at && Clock::now() - *failed_at > options.patience / 4) break;
    if (shared->failure) continue;
    lock.unlock();
    watchdog.look();
    lock.lock();
  }
  const bool is_stuck = shared->finished < ranks;
  std::optional<RankFailure> failure = shared->failure;
  lock.unlock();
  if (failure) failure->is_stuck = is_stuck;
  for (std::thread& thread : threads) is_stuck ? thread.detach() : thread.join();
  return failure;
}

}  // namespace meshwright
