/// Which process of how many this one is, as whoever started it says by environment variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace meshwright {

struct JobPlace {
  int rank = 0, ranks = 1;
  int local_rank = 0;  ///< number among the processes of this machine: which GPU
  std::string host;    ///< where rank 0 listens
  std::uint16_t port = 0;
  std::string started_by;  ///< "torchrun", "mpirun", "srun", or what else sets RANK
  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

/// Value of a variable; null: not set.
using Variables = std::function<const char*(const char* name)>;

/// Nothing where no variable tells of a job. InputError for variables that contradict each other or
/// that something is missing of.
///
/// RANK and WORLD_SIZE (torchrun, and our own launcher) come before OMPI_COMM_WORLD_RANK and _SIZE,
/// PMI_RANK and PMI_SIZE, SLURM_PROCID and SLURM_NTASKS. Where rank 0 listens is MASTER_ADDR and
/// MASTER_PORT; without them the first node of Slurm's list, or this machine where all processes
/// are on it. At MASTER_PORT torchrun itself listens: then it is the port behind that.
std::optional<JobPlace> job_place_from(const Variables& variables);

/// The first node of a list as Slurm writes it: "gpu[003-004,7],x1" is "gpu003". Empty for an empty
/// list.
std::string first_node_of(const std::string& list);

}  // namespace meshwright
