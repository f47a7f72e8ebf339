/// Launches the ranks of a run and stops them all when one fails.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/ids.hpp"
#include "executor/launch/rank_progress.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

enum class RankKind : std::uint8_t {
  kThreads,    ///< threads of this process
  kProcesses,  ///< forked from this process, on this host
  kMpi,        ///< started by mpirun; this process is one of them
  kJob         ///< started by any launcher; this process is one of them
};
std::string_view name_of(RankKind kind);  ///< "threads", "processes", "mpi", "job"

enum class FailureKind : std::uint8_t {
  kError,        ///< reported by the rank itself
  kSystemError,  ///< reported by the rank itself: memory, disk, network or a device failed
  kDeath,        ///< crashed, was killed, or exited without reporting a status
  kHang,         ///< no rank made progress for the watchdog timeout
  kInterruption  ///< LaunchOptions::interrupted; no rank is at fault
};

/// The first failure of a run: which rank, in which task, and why.
struct RankFailure {
  FailureKind kind = FailureKind::kError;
  RankId rank{};
  TaskId task{-1};  ///< -1: outside any task
  std::string cause;
  std::string hint = {};  ///< what to do; may be empty
  /// The rank could not be stopped: its thread still runs and may access everything passed to the
  /// run until the process exits.
  bool is_stuck = false;
};

using RankBody = std::function<void(Communicator&, RankProgress&)>;

class MpiJob;
struct JobPlace;

/// Rendezvous timeout: the processes of a job may be started one after another.
inline constexpr std::chrono::milliseconds kRendezvousTimeout = std::chrono::seconds(60);

struct LaunchOptions {
  /// Watchdog timeout: a run in which no rank makes progress for this long is hung. After a failure
  /// ranks get a quarter of it to stop.
  std::chrono::milliseconds watchdog_timeout = std::chrono::seconds(6);
  /// Set by a signal handler: all ranks stop at their next message or task.
  const std::atomic<bool>* interrupted = nullptr;
  /// Set by the signal handler the second time: all ranks stop even if there is finish_step.
  const std::atomic<bool>* interrupted_again = nullptr;
  /// Not null: an interruption only sets this flag, for ranks that end after their current step. In
  /// memory that forked ranks share.
  std::atomic<bool>* finish_step = nullptr;
  /// Receives the reports of all ranks (Communicator::report()), under MPI and in jobs in the
  /// process of rank 0. Calls are serialized, in order per rank, and may come from any thread.
  std::function<void(RankId, std::span<const std::byte>)> on_report = {};
  MpiJob* mpi = nullptr;          ///< kMpi only
  const JobPlace* job = nullptr;  ///< kJob only
};

/// Runs `body` once per rank. Returns nullopt if all completed; after a failure the other ranks
/// stop at their next message or task, or are killed if they are processes.
std::optional<RankFailure> run_ranks(RankKind kind, int ranks, const RankBody& body,
                                     const LaunchOptions& options = {});

std::optional<RankFailure> run_threads(int ranks, const RankBody& body,
                                       const LaunchOptions& options = {});
/// Forks: `body` runs in child processes with a copy of this process's memory; only their reports
/// come back. To be called while the process is single-threaded.
std::optional<RankFailure> run_processes(int ranks, const RankBody& body,
                                         const LaunchOptions& options = {});
/// Called by every process of the job, one rank each. Only that of rank 0 returns failures.
std::optional<RankFailure> run_mpi(int ranks, const RankBody& body, const LaunchOptions& options);
/// Called by every process of the job, which rendezvous over TCP. All return the failure of the
/// job, whichever rank it was; losing the process of rank 0 is a failure for all others.
std::optional<RankFailure> run_job(int ranks, const RankBody& body, const LaunchOptions& options);

}  // namespace meshwright
