/// A process that only waits for its child, which goes on with the work: whoever started it sees it
/// end by itself, however the child ends. mpirun takes a process that was killed for a reason to
/// end the job at once, without a word of what was under way, and exits as the process did.
#pragma once

#include <chrono>
#include <optional>

namespace meshwright {

struct ChildEnd {
  int exit_code = 0;
  int signal = 0;  ///< that killed it; 0: none
  /// Somebody has told this process to end meanwhile (SIGINT, SIGTERM), and so its child.
  bool was_told_to_end = false;
};

/// Forks. Nothing in the child, which is killed when its parent is; in the parent, once the child
/// is no more, how it ended. Both are of one process group: SIGINT and SIGTERM are the child's
/// business. To be called while the process has no other threads.
std::optional<ChildEnd> run_in_child();

/// Returns after that time; SIGINT or SIGTERM ends the process with `exit_code` before.
void wait_to_be_ended(std::chrono::milliseconds time, int exit_code);

}  // namespace meshwright
