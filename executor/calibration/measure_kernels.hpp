/// Times the executor's kernels inside training steps of small models under the virtual clock, with
/// the cache state, memory and copies of real training.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/cost/calibration.hpp"
#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "executor/tasks/timed_actions.hpp"
#include "kernels/device.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// A model to train for a few steps on one pipeline stage, with layers of the shapes to be
/// measured.
struct KernelProbe {
  std::string name;
  ModelGraph model;  ///< without dropout
  Strategy strategy;
  /// Ranks with equal work synchronize within passes.
  bool has_equal_ranks = false;
};

/// Measurements of one probe.
struct MeasuredProbe {
  std::vector<TimedKernels> kernels;
  TaskGraph graph;  ///< of one step
  /// Time of the forward and backward passes of a step beyond their kernels, summed over ranks.
  /// Messages cost nothing here, so this is the time that ranks of a sharded layer wait for each
  /// other.
  Seconds waiting;
};

/// What is left of a probe whose ranks wait for each other.
struct WaitingProbe {
  TaskGraph graph;
  Seconds waiting;
};

/// Runs the steps of one probe; the first one is a warm-up and is not counted. Kernels of a device
/// use its memory and its timers. Throws what the executor throws.
MeasuredProbe run_probe(const KernelProbe& probe, const KernelTable& kernels, int counted_steps,
                        const DeviceTable* device = nullptr);

}  // namespace meshwright
