#include "executor/launch/mpi_job.hpp"

#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace meshwright {
namespace {

class StartedMpi final : public MpiJob {
 public:
  explicit StartedMpi(RankProgress& progress) : MpiJob(progress) {
    // Open MPI's own crash handlers would take precedence over CrashWatch.
    ::setenv("OMPI_MCA_opal_signal", "", 0);
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count_);
    rank_ = RankId(rank);
    MPI_Comm here{};
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &ranks_here_);
    MPI_Comm_free(&here);
    MW_CHECK(provided >= MPI_THREAD_FUNNELED);
  }
  StartedMpi(const StartedMpi&) = delete;
  StartedMpi& operator=(const StartedMpi&) = delete;
  ~StartedMpi() override { MPI_Finalize(); }

  std::string first_problem(const std::string& mine) override {
    const int me = mine.empty() ? rank_count_ : rank_.value;
    int first = 0;
    MPI_Allreduce(&me, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == rank_count_) return {};
    if (first == 0) return mine.empty() ? "rank 0 failed" : mine;
    constexpr int kErrorTag = 0;
    if (rank_ == RankId(first))
      MPI_Send(mine.data(), static_cast<int>(mine.size()), MPI_CHAR, 0, kErrorTag, MPI_COMM_WORLD);
    if (rank_ != RankId(0)) return mine.empty() ? "another rank failed" : mine;
    MPI_Status status{};
    int size = 0;
    MPI_Probe(first, kErrorTag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::string text(static_cast<std::size_t>(size), '\0');
    MPI_Recv(text.data(), size, MPI_CHAR, first, kErrorTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return "rank " + std::to_string(first) + ": " + text;
  }
};

}  // namespace

bool is_built_with_mpi() { return true; }

std::unique_ptr<MpiJob> start_mpi(RankProgress& progress) {
  if (!rank_in_environment())
    throw RuntimeFailure({"--ranks mpi", "not started by mpirun",
                          "run mpirun -np 2 meshwright run best.plan.json --ranks mpi"});
  return std::make_unique<StartedMpi>(progress);
}

}  // namespace meshwright
