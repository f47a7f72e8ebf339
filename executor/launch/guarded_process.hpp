/// A guard process that only waits for its child, which does the work: to the launcher it always
/// exits normally, however the child ends. mpirun aborts the whole job as soon as a process is
/// killed and does not report what the process was doing.
#pragma once

#include <chrono>
#include <optional>

namespace meshwright {

struct ChildStatus {
  int exit_code = 0;
  int signal = 0;  ///< that killed it; 0: none
  /// This process, and with it its child, received SIGINT or SIGTERM.
  bool was_terminated = false;
  bool was_suspended = false;  ///< for too long, and therefore killed
};

/// Forks. Returns nullopt in the child, which is killed if its parent dies; waits in the parent and
/// returns how the child ended. Both stay in one process group, and the child handles SIGINT and
/// SIGTERM. A child that is suspended for longer than `longest_suspension`, but not its parent (as
/// by Ctrl-Z), is killed: peers may spin in MPI as long as it holds memory that they share. To be
/// called while the process is single-threaded.
std::optional<ChildStatus> run_in_child(std::chrono::milliseconds longest_suspension);

/// Sleeps for `time`; SIGINT or SIGTERM exits the process with `exit_code` before.
void wait_for_termination(std::chrono::milliseconds time, int exit_code);

}  // namespace meshwright
