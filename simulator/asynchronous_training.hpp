/// Workers that train through parameter servers without waiting for each other: how often they
/// update, and how old the weights are that their gradients were computed with.
///
/// k servers hold equal parts and are alike, so they are one here: its link passes one message
/// after another in order of arrival, K / (k B) each, inwards and outwards side by side, and one
/// update at a time. A worker pulls, computes, pushes, waits for its own update, and pulls again.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace meshwright {

struct AsynchronousTraining {
  std::vector<Ticks> compute;  ///< of every worker: forward and backward passes of one turn
  Ticks push, update, pull;    ///< of one worker's message, on the servers
  Ticks latency;               ///< of a message, beside its time on the link
  double jitter = 0;           ///< each turn's compute is longer by up to this share of itself
  std::uint64_t seed = 1;
  int turns = 100;  ///< of every worker
};

struct AsynchronousResult {
  Ticks duration;                       ///< until the last update
  Ticks period;                         ///< mean time between updates of one worker
  double updates_per_second = 0;        ///< of all workers
  std::vector<std::int64_t> staleness;  ///< [s]: updates that s others had overtaken
  double mean_staleness = 0;
  double busy = 0;  ///< share of the time that the servers' inward link was occupied
};

/// Deterministic for a seed. O(turns * workers * log workers). Needs a worker and a turn.
AsynchronousResult simulate_asynchronous(const AsynchronousTraining& training);

}  // namespace meshwright
