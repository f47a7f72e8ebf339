/// Asynchronous training with parameter servers: how often workers update, and how stale the
/// weights are that their gradients were computed with.
///
/// The k servers hold equal shards of the K bytes of parameters and behave alike, so they are
/// modeled as one server. Its full-duplex link (bandwidth B per server) carries one message at a
/// time in each direction, in order of arrival and for K / (k B) each; updates are applied one at a
/// time. A worker pulls, computes, pushes, waits for its own update, and pulls again.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

struct AsynchronousTraining {
  std::vector<Ticks> compute;  ///< by worker: forward and backward time of one iteration
  Ticks push, update, pull;    ///< per worker and iteration, on the servers
  Ticks latency;               ///< of a message, in addition to its time on the link
  double jitter = 0;           ///< largest relative increase of an iteration's compute time
  std::uint64_t seed = 1;
  int turns = 100;  ///< iterations per worker
};

struct AsynchronousResult {
  Ticks duration;                       ///< until the end of the last update
  Ticks period;                         ///< mean time between updates of one worker
  double updates_per_second = 0;        ///< over all workers
  std::vector<std::int64_t> staleness;  ///< [s]: number of updates with staleness s
  double mean_staleness = 0;
  double busy = 0;  ///< utilization of the servers' inbound link, 0 to 1
};

/// Deterministic for a given seed. Requires at least one worker and one iteration. O(turns *
/// workers * log workers).
AsynchronousResult simulate_asynchronous(const AsynchronousTraining& training);

}  // namespace meshwright
