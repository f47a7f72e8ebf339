/// A job of processes started by mpirun or srun: `--ranks mpi`. If the program was built without
/// MPI, start_mpi() only throws.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/ids.hpp"
#include "executor/launch/rank_progress.hpp"

namespace meshwright {

/// Rank of this process from the environment of Open MPI, MPICH or Slurm, before MPI_Init; nullopt
/// outside of a job.
std::optional<RankId> rank_in_environment();
/// Number of processes that mpirun or srun started, from the environment; 1 outside of a job.
int processes_in_environment();
/// Local rank of this process on its host; 0 if the environment does not define it.
int local_rank_in_environment();

/// MPI from MPI_Init to MPI_Finalize; once per process. All processes of the job make the same
/// calls.
class MpiJob {
 public:
  explicit MpiJob(RankProgress& progress) : progress_(progress) {}
  virtual ~MpiJob() = default;
  RankId rank() const { return rank_; }
  int rank_count() const { return rank_count_; }
  int ranks_here() const { return ranks_here_; }        ///< on this host
  RankProgress& progress() const { return progress_; }  ///< of this process's rank
  /// Collective. Empty if `mine` is empty on all ranks; otherwise rank 0 gets the text of the first
  /// rank that has one, prefixed with its rank, and all others get a non-empty text.
  virtual std::string first_problem(const std::string& mine) = 0;

 protected:
  RankProgress& progress_;
  RankId rank_;
  int rank_count_ = 1, ranks_here_ = 1;
};

/// False: start_mpi() always throws.
bool is_built_with_mpi();
/// Throws RuntimeFailure if the program has no MPI support or was not started by mpirun. `progress`
/// must outlive the job: it is all that is known of this rank if it dies.
std::unique_ptr<MpiJob> start_mpi(RankProgress& progress);

}  // namespace meshwright
