/// Shared by the launchers: how a rank's body ended, hang detection, and crashes of threads.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "executor/launch/launch.hpp"
#include "executor/transport/wire.hpp"

namespace meshwright {

struct BodyResult {
  bool was_stopped = false;  ///< another rank failed first
  /// Its own failure, without rank and task.
  std::optional<RankFailure> failure;
};
/// To be called inside a catch block: the failure of a rank that threw, without rank and task.
RankFailure failure_of_exception();
RankFailure out_of_memory();
/// Calls the body and catches exceptions.
BodyResult run_body(const RankBody& body, Communicator& communicator, RankProgress& progress);

/// Calls LaunchOptions::on_report, if set. An exception ends the run as a failure of the reporting
/// rank, which is returned without its task.
std::optional<RankFailure> deliver_report(const LaunchOptions& options, RankId rank,
                                          std::span<const std::byte> report);

/// Whether an interruption ends the run at once. Otherwise passes it on to the ranks, see
/// LaunchOptions::finish_step.
bool is_stopped_by_interruption(const LaunchOptions& options);

/// Interval of progress reports to rank 0.
inline constexpr std::chrono::milliseconds kReportInterval{100};
/// Serializes a rank's progress for the process of rank 0, which supervises the job.
void write_progress(ByteWriter& writer, const RankProgress& progress);
/// Updates the supervisor's copy.
void read_progress(ByteReader& reader, RankProgress& known);

/// Serializes a failure, without is_stuck, which only the rank's own process knows.
std::vector<std::byte> bytes_of(const RankFailure& failure);
/// Throws InvalidFrame.
RankFailure failure_from(std::span<const std::byte> bytes);

/// Cause when a process vanished before it reported how its rank ended.
inline constexpr std::string_view kProcessLost =
    "its process was killed or exited without reporting a status";

/// Cause of a hang if a process is suspended or its host is gone.
inline constexpr std::string_view kNoAnswer = "its process does not answer";

/// All ranks have ended, some were stopped, and none reported a failure: our bug, reported anyway.
RankFailure stopped_without_reason(RankId rank);

/// "signal 9 (Killed)"
std::string signal_text(int signal);

/// Progress of all ranks in shared memory: visible to processes forked after construction, and
/// readable after their death. Its lock-free atomics are all that the processes share.
class SharedProgress {
 public:
  explicit SharedProgress(int ranks);
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress();
  std::span<RankProgress> all() { return {static_cast<RankProgress*>(memory_), count_}; }

 private:
  std::size_t size() const { return count_ * sizeof(RankProgress); }
  std::size_t count_;
  void* memory_;
};

/// How long the other side has sent nothing. Long gaps between two calls count only in part: if
/// this process was suspended (Ctrl-Z), so was the other one.
class IdleTimer {
 public:
  /// `count`: of whatever the other side sends.
  std::chrono::steady_clock::duration since_change(std::int64_t count);

 private:
  std::int64_t count_ = -1;
  std::chrono::steady_clock::time_point asked_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration idle_{};
};

/// Detects interruptions, crashed threads and hangs; file I/O may take
/// much longer than anything else. Long gaps between two calls of poll() count
/// only in part: if this process was suspended (Ctrl-Z), so were its ranks.
class Watchdog {
 public:
  /// Both must outlive it.
  Watchdog(std::span<const RankProgress> ranks, const LaunchOptions& options)
      : ranks_(ranks), options_(options) {}
  std::optional<RankFailure> poll();

 private:
  using Clock = std::chrono::steady_clock;
  RankFailure hang_failure() const;
  std::span<const RankProgress> ranks_;
  const LaunchOptions& options_;
  std::int64_t beats_ = -1;
  bool is_on_disk_ = false;  ///< a rank that answers
  Clock::time_point polled_at_ = Clock::now();
  Clock::duration idle_{};  ///< time without progress of any rank
};

/// During its lifetime a thread that runs a rank does not take the process down when it crashes: it
/// is suspended in the signal handler and RankProgress::signal records the signal. Signals that
/// already have a handler (sanitizers) are left alone.
class CrashWatch {
 public:
  CrashWatch();
  ~CrashWatch();
  CrashWatch(const CrashWatch&) = delete;
  CrashWatch& operator=(const CrashWatch&) = delete;
  /// To be called by the thread that runs the rank; null: no longer.
  static void set_rank_of_this_thread(RankProgress* progress);
};

/// Runs the body of the process's only rank on another thread. `Own`: its progress, communicator
/// and end.
template <class Own>
std::thread start_rank(const std::shared_ptr<Own>& own, const RankBody& body) {
  return std::thread([own, body] {
    CrashWatch::set_rank_of_this_thread(&own->progress);
    own->end = run_body(body, own->communicator, own->progress);
    CrashWatch::set_rank_of_this_thread(nullptr);
    own->progress.is_finished = true;
  });
}

}  // namespace meshwright
