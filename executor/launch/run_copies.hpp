/// Launches the processes of a job on this machine without torchrun, srun or mpirun: this program
/// once per rank, with the variables of job_environment.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "executor/launch/launch.hpp"

namespace meshwright {

struct CopiesStatus {
  int exit_code = 0;  ///< the first that is not 0
  /// The process of rank 0 was killed; it would have reported all other failures.
  std::optional<RankFailure> failure;
};

/// A port that is free now; rank 0 will listen on it.
std::uint16_t free_port();

/// Starts the copies with the arguments of this process and waits for all. SIGINT and SIGTERM are
/// forwarded, also one that has already set `interrupted`; no copy outlives this process.
/// RuntimeFailure if one cannot be started. Must be called before other threads exist.
CopiesStatus run_copies(int ranks, const std::atomic<bool>& interrupted);

}  // namespace meshwright
