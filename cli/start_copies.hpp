/// A job of processes on this machine, without any other launcher: this program again, once per
/// rank, told by the variables of job_environment.hpp who it is.
#pragma once

namespace meshwright {

/// Starts them with the arguments of this process and waits for all; returns the exit code of rank
/// 0, or the first that is not 0. Interruptions reach the copies, which end by themselves; none
/// outlives this process. RuntimeFailure where one cannot be started. To be called while the
/// process has no other threads.
int start_copies(int ranks);

}  // namespace meshwright
