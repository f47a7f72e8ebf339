/// Replaces launch_mpi.cpp and mpi_job.cpp in builds without MPI.
#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "executor/launch/launch.hpp"
#include "executor/launch/mpi_job.hpp"

namespace meshwright {

bool is_built_with_mpi() { return false; }

std::unique_ptr<MpiJob> start_mpi(RankProgress&) {
  throw RuntimeFailure({"--ranks mpi", "this program was built without MPI",
                        "install Open MPI and rebuild, or use --ranks processes"});
}

std::optional<RankFailure> run_mpi(int, const RankBody&, const LaunchOptions&) {
  MW_CHECK(false);  // no MpiJob can exist
}

}  // namespace meshwright
