/// Stands for launch_mpi.cpp where no MPI was found.
#include "core/error.hpp"
#include "executor/launch.hpp"

namespace meshwright {

std::optional<RankFailure> run_mpi(int, const RankBody&, const LaunchOptions&) {
  throw RuntimeFailure({"--ranks mpi", "this program was built without MPI",
                        "install OpenMPI and build again, or use --ranks processes"});
}

}  // namespace meshwright
