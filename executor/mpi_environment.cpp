#include <charconv>
#include <cstdlib>
#include <string_view>

#include "executor/mpi_job.hpp"

namespace meshwright {

std::optional<RankId> rank_in_environment() {
  // OpenMPI; MPICH and Intel MPI; PMIx; srun.
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const std::string_view digits(text);
    int rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && end == digits.data() + digits.size() && rank >= 0)
      return RankId(rank);
  }
  return std::nullopt;
}

}  // namespace meshwright
