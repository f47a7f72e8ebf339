/// The program under mpirun of Open MPI, as a user starts it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/run_program.hpp"

namespace meshwright {

/// mpirun.openmpi in the folders of PATH, and the environment that it needs in tests; empty: none.
inline std::string find_mpirun() {
  // OpenMPI refuses root, and more processes than cores, unless told twice.
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);  // needs rights of ptrace
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);                    // OpenMPI never frees some memory
  setenv("HWLOC_HIDE_ERRORS", "2", 1);                            // of machines without /sys
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::filesystem::exists(folder + "/mpirun.openmpi")) return folder + "/mpirun.openmpi";
  return {};
}

/// `call` with `more` arguments in this many processes.
inline ProgramCall call_under_mpirun(const std::string& mpirun, int processes,
                                     const ProgramCall& call,
                                     const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments =
      words_of("--oversubscribe --mca mpi_yield_when_idle 1 -np " + std::to_string(processes));
  arguments.push_back(call.program);
  arguments.insert(arguments.end(), call.arguments.begin(), call.arguments.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  return {.program = mpirun, .arguments = std::move(arguments), .folder = call.folder};
}

}  // namespace meshwright
