/// TCP rendezvous of the processes of a job: creates one socket per pair of ranks.
///
/// Rank 0 listens on the address of the job, the others on ephemeral ports. Rank 0 sends all ranks
/// the addresses and a random token that authenticates later connections. Connections without a
/// valid handshake are closed.
#pragma once

#include <chrono>
#include <vector>

#include "executor/launch/job_environment.hpp"
#include "executor/transport/socket_communicator.hpp"

namespace meshwright {

struct JobSockets {
  RankSockets own;
  std::vector<FileDescriptor> of_launcher;  ///< rank 0 only: the supervisor's ends, by rank
};

/// Called by all processes. Throws RuntimeFailure, which names the missing ranks, if the rendezvous
/// times out.
JobSockets rendezvous_over_tcp(const JobPlace& place, std::chrono::milliseconds timeout);

}  // namespace meshwright
