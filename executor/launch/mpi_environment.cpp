#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "core/base/number_from_text.hpp"
#include "executor/launch/mpi_job.hpp"

namespace meshwright {

namespace {

/// The first of these variables that holds a non-negative integer.
std::optional<int> number_in(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const auto number = number_from_text<int>(text);
    if (number && *number >= 0) return number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RankId> rank_in_environment() {
  // Open MPI; MPICH and Intel MPI; PMIx; srun.
  const std::optional<int> rank =
      number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"});
  if (!rank) return std::nullopt;
  return RankId(*rank);
}

int processes_in_environment() {
  // Of a step of Slurm: the tasks of an allocation are set in its batch script, too.
  return number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}).value_or(1);
}

int local_rank_in_environment() {
  return number_in({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"})
      .value_or(0);
}

}  // namespace meshwright
