/// Where the processes of a job meet: sockets between every two of them, over TCP.
///
/// Rank 0 listens where the job says, all others where their system lets them; rank 0 tells
/// everybody where that is, with a number made up for this meeting by which they know each other.
/// Who says something else is sent away.
#pragma once

#include <chrono>
#include <vector>

#include "executor/job_environment.hpp"
#include "executor/socket_communicator.hpp"

namespace meshwright {

struct JobSockets {
  RankSockets own;
  std::vector<FileDescriptor> of_launcher;  ///< rank 0 only: its ends, by rank
};

/// Called by all processes. RuntimeFailure, with who is missing, when they have not met in time.
JobSockets meet_over_tcp(const JobPlace& place, std::chrono::milliseconds patience);

}  // namespace meshwright
