/// Starts the ranks of a run and ends them all when one fails.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/ids.hpp"
#include "executor/communicator.hpp"

namespace meshwright {

enum class RankKind : std::uint8_t {
  kThreads,    ///< of this process
  kProcesses,  ///< children of this process, on this machine
  kMpi,        ///< started by mpirun: this process is one of them
  kJob         ///< started by anybody: this process is one of them
};
std::string_view name_of(RankKind kind);  ///< "threads", "processes", "mpi", "job"

/// What a launcher may look at while the rank runs. Lies in shared memory where ranks are
/// processes, so that it outlives a rank that dies.
struct RankProgress {
  Beats beats{0};                        ///< rises with every kernel and piece of a message
  std::atomic<std::int32_t> task{-1};    ///< under way; -1: none
  std::atomic<std::int32_t> signal{0};   ///< that would have killed the rank; 0: none
  std::atomic<bool> is_waiting{false};   ///< for another rank
  std::atomic<bool> is_finished{false};  ///< nothing more will come
  std::atomic<bool> is_on_disk{false};   ///< reads or writes a file, which takes what it takes
  /// Set by the launcher: the rank ends with a PeerFailure before its next task.
  std::atomic<bool> must_stop{false};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<std::int32_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

enum class FailureKind : std::uint8_t {
  kError,        ///< the rank says what is wrong
  kDeath,        ///< it crashed, was killed, or ended without a word
  kHang,         ///< neither it nor any other rank moves
  kInterruption  ///< LaunchOptions::interrupted; no rank is at fault
};

/// The first thing that went wrong, where, and doing what.
struct RankFailure {
  FailureKind kind = FailureKind::kError;
  RankId rank;
  TaskId task{-1};  ///< -1: outside any task
  std::string cause;
  /// The rank could not be stopped: its thread is still there and may touch whatever the run was
  /// given; only ending the process ends it.
  bool is_stuck = false;
};

using RankBody = std::function<void(Communicator&, RankProgress&)>;

class MpiJob;
struct JobPlace;

/// Processes of a job may be started one after the other.
inline constexpr std::chrono::milliseconds kMeetingPatience = std::chrono::seconds(60);

struct LaunchOptions {
  /// A run in which no rank moves for so long hangs. A quarter of it is what ranks are then given
  /// to stop.
  std::chrono::milliseconds patience = std::chrono::seconds(6);
  /// Set by a signal handler: the ranks stop at their next message or task.
  const std::atomic<bool>* interrupted = nullptr;
  /// Takes what ranks report (Communicator::report()): one call at a time, in the order of each
  /// rank, on any thread. Under MPI the process of rank 0 takes those of all ranks.
  std::function<void(RankId, std::span<const std::byte>)> on_report = {};
  MpiJob* mpi = nullptr;          ///< kMpi only
  const JobPlace* job = nullptr;  ///< kJob only
};

/// Runs `body` once per rank. Nothing when all came to their end; after a failure the other ranks
/// stop at their next message or task, and are killed where that is possible.
std::optional<RankFailure> run_ranks(RankKind kind, int ranks, const RankBody& body,
                                     const LaunchOptions& options = {});

std::optional<RankFailure> run_threads(int ranks, const RankBody& body,
                                       const LaunchOptions& options = {});
/// Forks: `body` runs in children, which see memory as it was and leave nothing but what they
/// report. To be called while the process has no other threads.
std::optional<RankFailure> run_processes(int ranks, const RankBody& body,
                                         const LaunchOptions& options = {});
/// All processes of the job call it; one rank each. Only that of rank 0 is told of failures.
std::optional<RankFailure> run_mpi(int ranks, const RankBody& body, const LaunchOptions& options);
/// The same for processes that meet over TCP.
std::optional<RankFailure> run_job(int ranks, const RankBody& body, const LaunchOptions& options);

}  // namespace meshwright
