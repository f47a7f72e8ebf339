/// TCP rendezvous of the processes of a job: creates one socket per pair of ranks.
///
/// Rank 0 listens on the address of the job, the others on the interface through which they reach
/// it, on ephemeral ports. Every connection begins with a handshake (handshake.hpp) under the
/// secret of the job. Rank 0 then sends all ranks the addresses, and random bytes that are part of
/// the secret of the connections between the others.
#pragma once

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "executor/launch/job_environment.hpp"
#include "executor/transport/socket_communicator.hpp"

namespace meshwright {

struct JobSockets {
  RankSockets own;
  std::vector<FileDescriptor> of_launcher;  ///< rank 0 only: the supervisor's ends, by rank
};

class RendezvousInterrupted : public std::runtime_error {
 public:
  RendezvousInterrupted() : std::runtime_error("interrupted") {}
};

/// Called by all processes. Throws RuntimeFailure, which names the missing ranks, if the rendezvous
/// times out, and RendezvousInterrupted once `interrupted`, if given, is set.
JobSockets rendezvous_over_tcp(const JobPlace& place, std::chrono::milliseconds timeout,
                               const std::atomic<bool>* interrupted = nullptr);

}  // namespace meshwright
