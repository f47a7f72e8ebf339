/// Rank, world size and rendezvous address from the environment variables of an external launcher.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace meshwright {

struct JobPlace {
  int rank = 0, ranks = 1;
  int local_rank = 0;  ///< among the processes on this host: selects the GPU
  std::string host;    ///< rendezvous address: rank 0 listens there
  std::uint16_t port = 0;
  /// Of MESHWRIGHT_JOB_SECRET: processes without it cannot join. Empty: none, anyone who can reach
  /// the address can.
  std::string secret = {};
  std::string started_by;  ///< "torchrun", "mpirun", "srun", or "RANK" for others
  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

/// Returns the value of a variable; null: not set.
using Variables = std::function<const char*(const char* name)>;

/// Returns nullopt outside of a job. Throws InputError if the variables are incomplete or
/// contradict each other.
///
/// RANK and WORLD_SIZE (torchrun, and our own launcher) take precedence over OMPI_COMM_WORLD_RANK
/// and _SIZE, PMI_RANK and PMI_SIZE, SLURM_PROCID and SLURM_NTASKS. Rank 0 listens on MASTER_ADDR
/// and MASTER_PORT; without them on the first node of Slurm's node list, or on this host if all
/// processes run here. torchrun itself listens on MASTER_PORT: then the next port is used.
std::optional<JobPlace> job_place_from(const Variables& variables);

/// The first node of a Slurm node list: "gpu003" for "gpu[003-004,7],x1". Empty for an empty list.
std::string first_node_of(const std::string& list);

}  // namespace meshwright
