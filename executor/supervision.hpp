/// What launchers share: how a rank's body ended, which rank hangs, and crashes of threads.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "executor/launch.hpp"
#include "executor/wire.hpp"

namespace meshwright {

struct BodyEnd {
  bool was_stopped = false;          ///< because another rank failed
  std::optional<std::string> cause;  ///< of a failure of its own
};
/// As cause, when the body has asked for memory and got none.
inline constexpr std::string_view kNoMemory = "the system gives it no more memory";
/// Calls the body and catches what it throws.
BodyEnd run_body(const RankBody& body, Communicator& communicator, RankProgress& progress);

/// Calls LaunchOptions::on_report, if it is set. What that throws ends the run as a failure of the
/// rank whose report it was: this is its cause.
std::optional<std::string> hand_over(const LaunchOptions& options, RankId rank,
                                     std::span<const std::byte> report);

/// How far a rank is, for a watcher in another process.
void write_progress(ByteWriter& writer, const RankProgress& progress);
/// Into what the watcher knows of it.
void read_progress(ByteReader& reader, RankProgress& known);

/// Of ranks that all ended without saying why some of them had to stop: our bug, told all the same.
RankFailure stopped_without_reason(RankId rank);

/// "signal 9 (Killed)"
std::string signal_text(int signal);

/// Of ranks, where all processes that are forked from now on see it, and what they write outlives
/// them. Its lock-free numbers are all that they share.
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

/// Notices interruptions, crashed threads, and when no rank has moved for a while. Only time
/// between looks that follow each other soon counts: a process that was stopped (Ctrl-Z) and goes
/// on has ranks that were stopped too.
class Watchdog {
 public:
  /// Both outlive it.
  Watchdog(std::span<const RankProgress> ranks, const LaunchOptions& options)
      : ranks_(ranks), options_(options) {}
  std::optional<RankFailure> look();

 private:
  using Clock = std::chrono::steady_clock;
  RankFailure hanging() const;
  std::span<const RankProgress> ranks_;
  const LaunchOptions& options_;
  std::int64_t beats_ = -1;
  Clock::time_point looked_ = Clock::now();
  Clock::duration still_{};  ///< for so long no rank has moved
};

/// While it lives, a thread that would crash the process while it carries out a rank stays where it
/// is, and RankProgress::signal says why. Signals that somebody handles already (sanitizers) are
/// left to them.
class CrashWatch {
 public:
  CrashWatch();
  ~CrashWatch();
  CrashWatch(const CrashWatch&) = delete;
  CrashWatch& operator=(const CrashWatch&) = delete;
  /// To be called by the thread that carries out the rank; null: no longer.
  static void set_rank_of_this_thread(RankProgress* progress);
};

}  // namespace meshwright
