/// Launches the processes of a job on this machine without torchrun, srun or mpirun: this program
/// once per rank, with the variables of job_environment.hpp.
#pragma once

namespace meshwright {

/// Starts the copies with the arguments of this process, waits for all, and returns the first exit
/// code that is not 0. SIGINT and SIGTERM are forwarded; no copy outlives this process.
/// RuntimeFailure if one cannot be started. Must be called before other threads exist.
int start_copies(int ranks);

}  // namespace meshwright
