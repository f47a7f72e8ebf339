/// Launches the processes of a job on this machine without torchrun, srun or mpirun: this program
/// once per rank, with the variables of job_environment.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "executor/launch/launch.hpp"

namespace meshwright {

struct CopiesStatus {
  int exit_code = 0;  ///< of the first copy that exited with an error, 130 if interrupted
  /// What no copy has reported, since that of rank 0 was killed or interrupted before it could.
  std::optional<RankFailure> failure;
};

/// A port that is free now; rank 0 will listen on it.
std::uint16_t free_port();

/// Starts the copies with the arguments of this process and waits for all. SIGINT and SIGTERM are
/// forwarded, also one that has already set `interrupted`; no copy outlives this process. After a
/// failure the other copies are stopped, those that do not end within twice `grace` are killed.
/// Throws RuntimeFailure if one cannot be started. Must be called before other threads exist.
CopiesStatus run_copies(int ranks, const std::atomic<bool>& interrupted,
                        std::chrono::milliseconds grace);

}  // namespace meshwright
