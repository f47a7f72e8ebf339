/// Starts the ranks of a run and ends them all when one fails.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/ids.hpp"
#include "executor/communicator.hpp"

namespace meshwright {

/// What a watchdog may look at while the rank runs.
struct RankProgress {
  std::atomic<std::int64_t> beats{0};   ///< rises with every kernel and message
  std::atomic<std::int32_t> task{-1};   ///< under way
  std::atomic<bool> is_waiting{false};  ///< for another rank
};

/// The first thing that went wrong, where, and doing what.
struct RankFailure {
  RankId rank;
  TaskId task{-1};  ///< -1: outside any task
  std::string cause;
  /// The rank could not be stopped: its thread is still there, and only ending the process ends it.
  bool is_stuck = false;
};

using RankBody = std::function<void(Communicator&, RankProgress&)>;

struct LaunchOptions {
  /// A run in which no rank moves for so long hangs.
  std::chrono::milliseconds patience = std::chrono::seconds(8);
  /// Set by a signal handler: the ranks stop at their next message.
  const std::atomic<bool>* interrupted = nullptr;
};

/// Runs `body` once per rank, as threads of this process. Nothing when all came to their end; after
/// a failure the other ranks stop at their next message.
std::optional<RankFailure> run_threads(int ranks, const RankBody& body,
                                       const LaunchOptions& options = {});

}  // namespace meshwright
