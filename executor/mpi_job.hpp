/// The processes that mpirun (or srun) has started: `--ranks mpi`. Where the program was built
/// without MPI, all that is left of it is a message.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/ids.hpp"
#include "executor/launch.hpp"

namespace meshwright {

/// Of this process, as OpenMPI, MPICH and Slurm tell it before MPI is started; nothing: no job.
std::optional<RankId> rank_in_environment();
/// Its number among the processes of this machine; 0 where nobody says.
int local_rank_in_environment();

/// MPI from its start to its end; once in a process. All processes of the job make the same calls.
class MpiJob {
 public:
  explicit MpiJob(RankProgress& progress) : progress_(progress) {}
  virtual ~MpiJob() = default;
  RankId rank() const { return rank_; }
  int rank_count() const { return rank_count_; }
  int ranks_here() const { return ranks_here_; }        ///< on this machine
  RankProgress& progress() const { return progress_; }  ///< of this process's rank
  /// Empty when all bring nothing; else, at rank 0, what the first rank with something to say says,
  /// with its number, and at all others something.
  virtual std::string first_problem(const std::string& mine) = 0;

 protected:
  RankProgress& progress_;
  RankId rank_;
  int rank_count_ = 1, ranks_here_ = 1;
};

/// RuntimeFailure where the program has no MPI, or was not started by mpirun. `progress` outlives
/// the job: it is what is known of this rank should it die.
std::unique_ptr<MpiJob> start_mpi(RankProgress& progress);

}  // namespace meshwright
